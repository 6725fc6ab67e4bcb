/* OpenCL found at run time, as hashcat, ctypes and most bindings find it.
 *
 *   dlopened [local|global|deepbind|default|dlvsym]
 *
 * `default` opens the loader globally and looks in RTLD_DEFAULT; `dlvsym` asks for
 * symbol versions, as ocl-icd defines them.
 */
#define NO_LINKED_OPENCL
#include "cl_util.h"
#include <dlfcn.h>

static void *library;
static const char *mode = "local";

static void *find(const char *name, const char *version)
{
    void *from = strcmp(mode, "default") == 0 ? RTLD_DEFAULT : library;
    void *f = strcmp(mode, "dlvsym") == 0 ? dlvsym(from, name, version) : dlsym(from, name);
    if (!f)
        fprintf(stderr, "dlopened: %s\n", dlerror());
    CHECK(f);
    return f;
}

#define FIND(name, version) __typeof__(&name) p_##name = find(#name, version)
#define TRY(name, ...)                                                   \
    do {                                                                 \
        cl_int code_ = CL_AS(#name, p_##name(__VA_ARGS__));              \
        if (code_ != CL_SUCCESS)                                         \
            fail(__FILE__, __LINE__, #name, code_);                      \
    } while (0)
#define NEW(name, ...)                                                   \
    __extension__({                                                      \
        cl_int err = -9999;                                              \
        __auto_type made_ = CL_AS(#name, p_##name(__VA_ARGS__, &err));   \
        if (err != CL_SUCCESS)                                           \
            fail(__FILE__, __LINE__, #name, err);                        \
        made_;                                                           \
    })

static void *open_loader(void)
{
    int flags = RTLD_NOW | RTLD_LOCAL;
    if (strcmp(mode, "global") == 0 || strcmp(mode, "default") == 0)
        flags = RTLD_NOW | RTLD_GLOBAL;
    else if (strcmp(mode, "deepbind") == 0)
        flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
    else
        CHECK(strcmp(mode, "local") == 0 || strcmp(mode, "dlvsym") == 0);
    void *l = dlopen("libOpenCL.so.1", flags);
    if (!l)
        fprintf(stderr, "dlopened: %s\n", dlerror());
    CHECK(l);
    return l;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        mode = argv[1];
    library = open_loader();
    FIND(clGetPlatformIDs, "OPENCL_1.0");
    FIND(clGetPlatformInfo, "OPENCL_1.0");
    FIND(clGetDeviceIDs, "OPENCL_1.0");
    FIND(clCreateContext, "OPENCL_1.0");
    FIND(clCreateCommandQueueWithProperties, "OPENCL_2.0");
    FIND(clCreateBuffer, "OPENCL_1.0");
    FIND(clEnqueueFillBuffer, "OPENCL_1.2");
    FIND(clEnqueueReadBuffer, "OPENCL_1.0");
    FIND(clFinish, "OPENCL_1.0");
    FIND(clReleaseMemObject, "OPENCL_1.0");
    FIND(clReleaseCommandQueue, "OPENCL_1.0");
    FIND(clReleaseContext, "OPENCL_1.0");

    cl_platform_id platform;
    cl_device_id device;
    char name[256];
    TRY(clGetPlatformIDs, 1, &platform, NULL);
    TRY(clGetPlatformInfo, platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    TRY(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    cl_context context = NEW(clCreateContext, NULL, 1, &device, NULL, NULL);
    cl_command_queue queue = NEW(clCreateCommandQueueWithProperties, context, device, NULL);
    cl_mem buffer = NEW(clCreateBuffer, context, CL_MEM_READ_WRITE, 4096, NULL);

    unsigned char bytes[4096], seven = 7;
    for (int i = 0; i < 10; i++)
        TRY(clEnqueueFillBuffer, queue, buffer, &seven, 1, 0, 4096, 0, NULL, NULL);
    TRY(clEnqueueReadBuffer, queue, buffer, CL_TRUE, 0, 4096, bytes, 0, NULL, NULL);
    TRY(clFinish, queue);
    for (int i = 0; i < 4096; i++)
        CHECK(bytes[i] == 7);

    TRY(clReleaseMemObject, buffer);
    TRY(clReleaseCommandQueue, queue);
    TRY(clReleaseContext, context);
    printf("%s: %s\n", mode, name);
    expect_print();
    return 0;
}
