/* How the fake NCCL reaches the driver: opened by name, and everything from cuGetProcAddress. */

static int (*launch_it)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     cudaStream_t, void **, void **);
static int (*load)(void **, const void *, void *, void *, int, void *, void *, int);
static int (*kernel_of)(void **, void *, const char *);
static int (*current_device)(int *);
static void *code;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int reach_driver(void)
{
    pthread_mutex_lock(&lock);
    if (!launch_it) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        int (*get)(const char *, void **, int, uint64_t, int *) =
            driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
        int status;
        if (get) {
            get("cuCtxGetDevice", (void **)&current_device, 12020, 0, &status);
            get("cuLibraryLoadData", (void **)&load, 12020, 0, &status);
            get("cuLibraryGetKernel", (void **)&kernel_of, 12020, 0, &status);
            get("cuLaunchKernel", (void **)&launch_it, 12020, 0, &status);
        }
    }
    int good = launch_it && load && kernel_of && current_device;
    if (good && !code)
        good = load(&code, "fake code", NULL, NULL, 0, NULL, NULL, 0) == 0;
    pthread_mutex_unlock(&lock);
    return good;
}

/* 0 if it was launched. */
static int launch(const char *name, unsigned blocks, cudaStream_t stream)
{
    void *kernel;
    return kernel_of(&kernel, code, name) || launch_it(kernel, blocks, 1, 1, 512, 1, 1, 0, stream, NULL, NULL);
}
