/* Part of fake_cuda.c: devices, contexts, memory and code. */

EXPORT CUresult cuInit(unsigned flags)
{
    ENTER(cuInit);
    (void)flags;
    if (owner && owner != getpid())
        LEAVE(CUDA_ERROR_NOT_INITIALIZED);
    if (!owner) {
        const char *n = getenv("FAKE_CUDA_DEVICES"), *ns = getenv("FAKE_CUDA_KERNEL_NS");
        devices = n ? atoi(n) : 1;
        kernel_ns = ns ? atol(ns) : 1000;
        owner = getpid();
        atexit(at_end);
    }
    LEAVE(devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    CALLED(cuDriverGetVersion);
    const char *v = getenv("FAKE_CUDA_VERSION");
    *version = v ? atoi(v) : 13000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    CALLED(cuDeviceGetCount);
    *count = devices;
    return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CALLED(cuDeviceGet);
    if (owner != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CALLED(cuDeviceGetName);
    snprintf(name, length, "Fake Device %d", device);
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device)
{
    for (int i = 0; i < 16; i++)
        out->bytes[i] = i == 15 ? device : 0xf0 + i;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *out, CUdevice d) { CALLED(cuDeviceGetUuid); return uuid(out, d); }
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice d) { CALLED(cuDeviceGetUuid_v2); return uuid(out, d); }

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CALLED(cuDeviceTotalMem_v2);
    *bytes = (size_t)(device + 1) << 30;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CALLED(cuDeviceGetAttribute);
    switch (attribute) {
    case 1: *value = 1024; break;       /* threads of a block */
    case 10: *value = 32; break;        /* warp */
    case 13: *value = 1980000; break;   /* kHz */
    case 16: *value = 132 - device; break; /* multiprocessors */
    case 36: *value = 2619000; break;   /* kHz of memory */
    case 37: *value = 5120; break;      /* bits of the bus */
    case 39: *value = 2048; break;      /* threads of a multiprocessor */
    case 75: *value = 9; break;         /* compute capability */
    case 76: *value = 0; break;
    case 81: *value = 233472; break;    /* shared memory of a multiprocessor */
    case 82: *value = 65536; break;     /* registers of a multiprocessor */
    case 106: *value = 32; break;       /* blocks of a multiprocessor */
    case 111: *value = 1024; break;     /* shared memory kept back */
    default: *value = 1000 + attribute;
    }
    return CUDA_SUCCESS;
}

/* ---- Contexts */

static struct fake_ctx *new_context(int device)
{
    struct fake_ctx *c = calloc(1, sizeof *c);
    c->state = ALIVE;
    c->device = device;
    c->id = next_id++;
    c->legacy = (struct fake_stream){.state = ALIVE, .ctx = c, .id = next_id++};
    c->next = contexts;
    contexts = c;
    return c;
}

static CUresult create(CUcontext *out, CUdevice device)
{
    if (owner != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device < 0 || device >= devices || depth == STACK)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = stack[depth++] = new_context(device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate(CUcontext *c, unsigned f, CUdevice d) { (void)f; ENTER(cuCtxCreate); LEAVE(create(c, d)); }
EXPORT CUresult cuCtxCreate_v2(CUcontext *c, unsigned f, CUdevice d) { (void)f; ENTER(cuCtxCreate_v2); LEAVE(create(c, d)); }
EXPORT CUresult cuCtxCreate_v3(CUcontext *c, void *p, int n, unsigned f, CUdevice d)
{ (void)p, (void)n, (void)f; ENTER(cuCtxCreate_v3); LEAVE(create(c, d)); }
EXPORT CUresult cuCtxCreate_v4(CUcontext *c, void *p, unsigned f, CUdevice d)
{ (void)p, (void)f; ENTER(cuCtxCreate_v4); LEAVE(create(c, d)); }

/* Waits for what is in flight, as the driver does, and then everything in it is gone. */
static CUresult destroy(struct fake_ctx *c)
{
    if (!c || c->state != ALIVE)
        return CUDA_ERROR_INVALID_CONTEXT;
    for (struct fake_stream *s = c->streams; s; s = s->next) {
        wait_until(c->device, s->end);
        s->state = DEAD;
    }
    wait_until(c->device, c->legacy.end);
    for (struct fake_event *e = events; e; e = e->next)
        if (e->ctx == c)
            e->state = DEAD;
    c->state = DEAD;
    c->legacy.state = DEAD;
    while (depth > 0 && stack[depth - 1] == c)
        depth--;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy(CUcontext c) { ENTER(cuCtxDestroy); LEAVE(destroy(c)); }
EXPORT CUresult cuCtxDestroy_v2(CUcontext c) { ENTER(cuCtxDestroy_v2); LEAVE(destroy(c)); }

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    ENTER(cuCtxPushCurrent_v2);
    CUresult e = check(c);
    if (e == CUDA_SUCCESS || e == CUDA_ERROR_ILLEGAL_ADDRESS) {
        if (depth == STACK)
            LEAVE(CUDA_ERROR_INVALID_VALUE);
        stack[depth++] = c;
        e = CUDA_SUCCESS;
    }
    LEAVE(e);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    ENTER(cuCtxPopCurrent_v2);
    if (depth == 0)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (out)
        *out = stack[depth];
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext c)
{
    ENTER(cuCtxSetCurrent);
    if (depth > 0)
        depth--;
    if (c)
        stack[depth++] = c;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
    CALLED(cuCtxGetCurrent);
    *out = current();
    return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *out)
{
    ENTER(cuCtxGetDevice);
    CUresult e = check(current());
    if (e == CUDA_SUCCESS)
        *out = current()->device;
    LEAVE(e);
}

EXPORT CUresult cuCtxGetId(CUcontext c, unsigned long long *out)
{
    ENTER(cuCtxGetId);
    if (is_old())
        LEAVE(CUDA_ERROR_NOT_FOUND);
    c = c ? c : current();
    CUresult e = check(c);
    if (e == CUDA_SUCCESS)
        *out = c->id;
    LEAVE(e);
}

EXPORT CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    struct fake_ctx *c = current();
    CUresult e = check(c);
    if (e || (e = unsafe_call()))
        LEAVE(e);
    for (struct fake_stream *s = c->streams; s; s = s->next)
        wait_until(c->device, s->end);
    wait_until(c->device, c->legacy.end);
    wait_until(c->device, own_stream(c)->end);
    LEAVE(check(c));
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
    ENTER(cuDevicePrimaryCtxRetain);
    if (owner != getpid())
        LEAVE(CUDA_ERROR_NOT_INITIALIZED);
    if (d < 0 || d >= devices)
        LEAVE(CUDA_ERROR_INVALID_DEVICE);
    if (!primary[d])
        primary[d] = new_context(d);
    retained[d]++;
    *out = primary[d];
    LEAVE(CUDA_SUCCESS);
}

static CUresult release_primary(CUdevice d, int all)
{
    if (d < 0 || d >= devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!primary[d])
        return CUDA_SUCCESS;
    retained[d] = all || retained[d] < 1 ? 0 : retained[d] - 1;
    if (retained[d] == 0) {
        destroy(primary[d]);
        primary[d] = NULL;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice d) { ENTER(cuDevicePrimaryCtxRelease); LEAVE(release_primary(d, 0)); }
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) { ENTER(cuDevicePrimaryCtxRelease_v2); LEAVE(release_primary(d, 0)); }
EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice d) { ENTER(cuDevicePrimaryCtxReset); LEAVE(release_primary(d, 1)); }
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) { ENTER(cuDevicePrimaryCtxReset_v2); LEAVE(release_primary(d, 1)); }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active)
{
    CALLED(cuDevicePrimaryCtxGetState);
    *flags = 0;
    *active = d >= 0 && d < devices && primary[d];
    return CUDA_SUCCESS;
}

/* ---- Memory */

static CUresult allocate(void **out, size_t bytes, int kind)
{
    CUresult e = check(current());
    if (e || (e = unsafe_call()))
        return e;
    struct memory *m = calloc(1, sizeof *m);
    *m = (struct memory){.at = calloc(1, bytes ? bytes : 1), .bytes = bytes, .kind = kind, .next = memories};
    memories = m;
    *out = m->at;
    return CUDA_SUCCESS;
}

static CUresult release(void *at)
{
    for (struct memory **m = &memories; *m; m = &(*m)->next)
        if ((*m)->at == at) {
            free(at);
            *m = (*m)->next;
            return CUDA_SUCCESS;
        }
    return at ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) { ENTER(cuMemAlloc_v2); LEAVE(allocate((void **)p, n, 2)); }
EXPORT CUresult cuMemAllocHost_v2(void **p, size_t n) { ENTER(cuMemAllocHost_v2); LEAVE(allocate(p, n, 1)); }
EXPORT CUresult cuMemHostAlloc(void **p, size_t n, unsigned f) { (void)f; ENTER(cuMemHostAlloc); LEAVE(allocate(p, n, 1)); }
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *p, size_t n, unsigned f)
{ (void)f; ENTER(cuMemAllocManaged); LEAVE(allocate((void **)p, n, 3)); }
EXPORT CUresult cuMemFree_v2(CUdeviceptr p) { ENTER(cuMemFree_v2); LEAVE(release((void *)p)); }
EXPORT CUresult cuMemFreeHost(void *p) { ENTER(cuMemFreeHost); LEAVE(release(p)); }

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer)
{
    ENTER(cuPointerGetAttribute);
    for (struct memory *m = memories; m; m = m->next)
        if ((char *)pointer >= m->at && (char *)pointer < m->at + m->bytes) {
            if (attribute == 2)
                *(unsigned *)data = m->kind == 1 ? 1 : 2;
            else if (attribute == 8)
                *(unsigned *)data = m->kind == 3;
            LEAVE(CUDA_SUCCESS);
        }
    LEAVE(CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuMemHostRegister_v2(void *at, size_t n, unsigned f) { (void)at, (void)n, (void)f; CALLED(cuMemHostRegister_v2); return CUDA_SUCCESS; }
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned f)
{ (void)f; CALLED(cuMemHostGetDevicePointer_v2); *out = (CUdeviceptr)at; return CUDA_SUCCESS; }

/* ---- Code. */

static int option_of(unsigned n, const int *names, int name)
{
    for (unsigned i = 0; names && i < n; i++)
        if (names[i] == name)
            return (int)i;
    return -1;
}

/* Writes into one of the logs that the options name (3 and 4, 5 and 6), as the compiler does. */
static void log_to(int buffer, const char *text, unsigned n, const int *names, void **values)
{
    int at = option_of(n, names, buffer), size = option_of(n, names, buffer + 1);
    if (at < 0 || size < 0)
        return;
    int written = snprintf(values[at], (size_t)values[size], "%s", text);
    values[size] = (void *)(size_t)written;
}

/* Linked code: an ELF file of one section, whose text is behind its header. */
static const char LINKED[] = "\177ELF\2\1\1linked";
enum { LINK_HEAD = 128 };

static CUresult load_with(struct fake_module **out, const void *image, int library, unsigned n, const int *names,
                          void **values)
{
    CUresult e = library ? owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED : check(current());
    if (e)
        return e;
    const char *refuses = getenv("FAKE_CUDA_REFUSES");
    /* Only a text is looked into, which images of tests are by their first word. */
    int is_text = image && (!memcmp(image, "//", 2) || !memcmp(image, ".ver", 4));
    if (is_text && refuses && strstr(image, refuses)) {
        log_to(5, "refused", n, names, values);
        return 218; /* CUDA_ERROR_INVALID_PTX */
    }
    log_to(3, "compiled", n, names, values);
    if (image && !memcmp(image, LINKED, sizeof LINKED - 1))
        image = (const char *)image + LINK_HEAD, is_text = 1;
    *out = calloc(1, sizeof **out);
    **out = (struct fake_module){.state = ALIVE, .library = library, .ctx = current(), .text = is_text ? strdup(image) : NULL};
    return CUDA_SUCCESS;
}

static CUresult load(CUmodule *out, const void *image) { return load_with(out, image, 0, 0, NULL, NULL); }

static CUresult load_file(struct fake_module **out, const char *file, int library)
{
    static char text[1 << 20];
    FILE *f = fopen(file, "r");
    if (f) {
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    return load_with(out, f ? text : "", library, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoad(CUmodule *m, const char *f) { ENTER(cuModuleLoad); LEAVE(load_file(m, f, 0)); }
EXPORT CUresult cuModuleLoadData(CUmodule *m, const void *f) { ENTER(cuModuleLoadData); LEAVE(load(m, f)); }
EXPORT CUresult cuModuleLoadFatBinary(CUmodule *m, const void *f) { ENTER(cuModuleLoadFatBinary); LEAVE(load(m, f)); }
EXPORT CUresult cuModuleLoadDataEx(CUmodule *m, const void *f, unsigned n, void *o, void **v)
{ ENTER(cuModuleLoadDataEx); LEAVE(load_with(m, f, 0, n, o, v)); }
EXPORT CUresult cuLibraryLoadData(CUlibrary *l, const void *f, void *a, void **b, unsigned c, void *d, void **g, unsigned h)
{ (void)d, (void)g, (void)h; ENTER(cuLibraryLoadData); LEAVE(load_with(l, f, 1, c, a, b)); }
EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *l, const char *f, void *a, void **b, unsigned c, void *d, void **g, unsigned h)
{ (void)a, (void)b, (void)c, (void)d, (void)g, (void)h; ENTER(cuLibraryLoadFromFile); LEAVE(load_file(l, f, 1)); }

/* What is linked: all texts, one behind the other. Its code is gone when it ends. */
struct fake_link { int state; char *text, *code; };

static CUresult new_link(struct fake_link **out, unsigned n, const int *names, void **values)
{
    log_to(3, "linked", n, names, values);
    *out = calloc(1, sizeof **out);
    **out = (struct fake_link){.state = ALIVE, .text = strdup("")};
    return CUDA_SUCCESS;
}

static CUresult link_text(struct fake_link *l, const char *text, size_t size)
{
    const char *refuses = getenv("FAKE_CUDA_REFUSES");
    if (!l || l->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    size_t length = strnlen(text, size), before = strlen(l->text);
    if (refuses && memmem(text, length, refuses, strlen(refuses)))
        return 218; /* CUDA_ERROR_INVALID_PTX */
    /* One weak variable for all. */
    if (memmem(text, length, TWIN, sizeof TWIN - 1) && !memmem(text, length, ".weak .global .align 8 .u64 __hetrace_inside;", 45))
        return 209;
    l->text = realloc(l->text, before + length + 1);
    memcpy(l->text + before, text, length);
    l->text[before + length] = 0;
    return CUDA_SUCCESS;
}

static CUresult link_file(struct fake_link *l, const char *file)
{
    static char text[1 << 20];
    FILE *f = fopen(file, "r");
    if (!f)
        return 301;
    size_t size = fread(text, 1, sizeof text, f);
    fclose(f);
    return link_text(l, text, size);
}

static CUresult complete(struct fake_link *l, void **code, size_t *size)
{
    if (!l || l->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    const char *refuses = getenv("FAKE_CUDA_REFUSES_LINK");
    if (refuses && strstr(l->text, refuses))
        return 209; /* CUDA_ERROR_NO_BINARY_FOR_GPU */
    size_t length = strlen(l->text) + 1, all = LINK_HEAD + length;
    l->code = calloc(1, all);
    memcpy(l->code, LINKED, sizeof LINKED - 1);
    memcpy(l->code + LINK_HEAD, l->text, length);
    /* The one section's header is at 64, and begins at 0: it is all of it. */
    uint64_t at = 64, zero = 0, bytes = all;
    uint16_t shape[] = {64, 1, 0};
    memcpy(l->code + 0x28, &at, 8);
    memcpy(l->code + 0x3a, shape, sizeof shape);
    memcpy(l->code + 64 + 0x18, &zero, 8);
    memcpy(l->code + 64 + 0x20, &bytes, 8);
    *code = l->code;
    *size = all;
    return CUDA_SUCCESS;
}

static CUresult end_link(struct fake_link *l)
{
    if (!l || l->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    l->state = DEAD;
    if (l->code)
        memset(l->code, 0xdd, LINK_HEAD);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkCreate_v2(unsigned n, int *o, void **v, struct fake_link **l) { ENTER(cuLinkCreate_v2); LEAVE(new_link(l, n, o, v)); }
EXPORT CUresult cuLinkAddData_v2(struct fake_link *l, int k, void *d, size_t s, const char *m, unsigned n, int *o, void **v)
{ (void)k, (void)m, (void)n, (void)o, (void)v; ENTER(cuLinkAddData_v2); LEAVE(link_text(l, d, s)); }
EXPORT CUresult cuLinkAddFile_v2(struct fake_link *l, int k, const char *f, unsigned n, int *o, void **v)
{ (void)k, (void)n, (void)o, (void)v; ENTER(cuLinkAddFile_v2); LEAVE(link_file(l, f)); }
EXPORT CUresult cuLinkComplete(struct fake_link *l, void **c, size_t *s) { ENTER(cuLinkComplete); LEAVE(complete(l, c, s)); }
EXPORT CUresult cuLinkDestroy(struct fake_link *l) { ENTER(cuLinkDestroy); LEAVE(end_link(l)); }

static CUresult get_global(CUdeviceptr *out, size_t *bytes, struct fake_module *m, const char *name)
{
    if (!m || m->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    char declared[200];
    snprintf(declared, sizeof declared, ".u64 %s;", name);
    if (strcmp(name, TWIN) || !m->text || !strstr(m->text, declared))
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUdeviceptr)&base_of(m, current())->value;
    *bytes = 8;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *n, CUmodule m, const char *name)
{ ENTER(cuModuleGetGlobal_v2); LEAVE(get_global(out, n, m, name)); }
EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *out, size_t *n, CUlibrary m, const char *name)
{ ENTER(cuLibraryGetGlobal); LEAVE(get_global(out, n, m, name)); }

/* A function that was unloaded comes again under its address as another. */
static struct fake_function *unloaded;

static CUresult unload(struct fake_module *m)
{
    if (!m || m->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    m->state = DEAD;
    while (m->functions) {
        struct fake_function *f = m->functions;
        m->functions = f->next;
        f->state = DEAD;
        f->next = unloaded;
        unloaded = f;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule m) { ENTER(cuModuleUnload); LEAVE(unload(m)); }
EXPORT CUresult cuLibraryUnload(CUlibrary m) { ENTER(cuLibraryUnload); LEAVE(unload(m)); }

/* The name of the kernel that begins at or behind `at` in a text, and where that ends; NULL if there is none. */
static const char *next_kernel(const char *at, char name[120])
{
    at = at ? strstr(at, ".entry ") : NULL;
    if (at)
        sscanf(at + 7, " %119[A-Za-z0-9_$]", name);
    return at ? at + 7 : NULL;
}

static int has_kernel(struct fake_module *m, const char *wanted)
{
    char name[120];
    for (const char *at = next_kernel(m->text, name); at; at = next_kernel(at, name))
        if (!strcmp(name, wanted))
            return 1;
    return !m->text;
}

static CUresult get_function(struct fake_function **out, struct fake_module *m, const char *name)
{
    if (!m || m->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!strcmp(name, "missing") || !has_kernel(m, name))
        return CUDA_ERROR_NOT_FOUND;
    for (struct fake_function *f = m->functions; f; f = f->next)
        if (!strcmp(f->name, name) && !f->kernel) {
            *out = f;
            return CUDA_SUCCESS;
        }
    struct fake_function *f = unloaded ? unloaded : calloc(1, sizeof *f);
    if (f == unloaded)
        unloaded = f->next;
    f->state = ALIVE;
    f->most_shared = 0;
    f->kernel = NULL;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->module = m;
    f->next = m->functions;
    *out = m->functions = f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *n) { ENTER(cuLibraryGetKernel); LEAVE(get_function(k, l, n)); }

/* The function of a kernel in the current context has another handle. */
static CUresult function_of(struct fake_function **out, struct fake_function *k)
{
    if (!k || k->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    for (struct fake_function *f = k->module->functions; f; f = f->next)
        if (f->kernel == k && f->ctx == current()) {
            *out = f;
            return CUDA_SUCCESS;
        }
    struct fake_function *f = calloc(1, sizeof *f);
    *f = *k;
    f->kernel = k;
    f->ctx = current();
    f->next = k->module->functions;
    *out = k->module->functions = f;
    return CUDA_SUCCESS;
}

/* By a library's module it is the function that its kernel has. */
EXPORT CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *n)
{
    ENTER(cuModuleGetFunction);
    CUresult e = get_function(f, m, n);
    LEAVE(e == CUDA_SUCCESS && m->library ? function_of(f, *f) : e);
}

EXPORT CUresult cuKernelGetFunction(CUfunction *f, CUkernel k) { ENTER(cuKernelGetFunction); LEAVE(function_of(f, k)); }
EXPORT CUresult cuLibraryGetModule(CUmodule *m, CUlibrary l) { CALLED(cuLibraryGetModule); *m = l; return CUDA_SUCCESS; }

static CUresult count_kernels(unsigned *out, struct fake_module *m)
{
    char name[120];
    *out = 0;
    for (const char *at = next_kernel(m->text, name); at; at = next_kernel(at, name))
        ++*out;
    return CUDA_SUCCESS;
}

static CUresult list_kernels(struct fake_function **out, unsigned count, struct fake_module *m)
{
    char name[120];
    CUresult e = CUDA_SUCCESS;
    for (const char *at = next_kernel(m->text, name); at && count > 0 && !e; at = next_kernel(at, name), count--)
        e = get_function(out++, m, name);
    return e;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned *n, CUmodule m) { ENTER(cuModuleGetFunctionCount); LEAVE(count_kernels(n, m)); }
EXPORT CUresult cuLibraryGetKernelCount(unsigned *n, CUlibrary m) { ENTER(cuLibraryGetKernelCount); LEAVE(count_kernels(n, m)); }
EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *f, unsigned n, CUmodule m) { ENTER(cuModuleEnumerateFunctions); LEAVE(list_kernels(f, n, m)); }
EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *f, unsigned n, CUlibrary m) { ENTER(cuLibraryEnumerateKernels); LEAVE(list_kernels(f, n, m)); }

static CUresult set_attribute(struct fake_function *f, int attribute, int value)
{
    if (!f || f->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == 8)
        f->most_shared = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction f, int a, int v) { ENTER(cuFuncSetAttribute); LEAVE(set_attribute(f, a, v)); }
EXPORT CUresult cuKernelSetAttribute(int a, int v, CUkernel k, CUdevice d)
{ (void)d; ENTER(cuKernelSetAttribute); LEAVE(set_attribute(k, a, v)); }

static CUresult name_of(const char **out, struct fake_function *f)
{
    if (is_old())
        return CUDA_ERROR_NOT_FOUND;
    if (!f || f->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = f->name;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **out, CUfunction f) { ENTER(cuFuncGetName); LEAVE(name_of(out, f)); }
EXPORT CUresult cuKernelGetName(const char **out, CUkernel k) { ENTER(cuKernelGetName); LEAVE(name_of(out, k)); }

EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction f)
{
    ENTER(cuFuncGetModule);
    if (!f || f->state != ALIVE)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    *out = f->module;
    LEAVE(CUDA_SUCCESS);
}

static CUresult attribute_of(int *out, int attribute)
{
    *out = (int[]){1024, 4096, 16, 8, 40}[attribute < 5 ? attribute : 2];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *out, int a, CUfunction f) { (void)f; CALLED(cuFuncGetAttribute); return attribute_of(out, a); }
EXPORT CUresult cuKernelGetAttribute(int *out, int a, CUkernel k, CUdevice d)
{ (void)k, (void)d; CALLED(cuKernelGetAttribute); return attribute_of(out, a); }

/* ---- Names */

EXPORT CUresult cuGetErrorName(int error, const char **out)
{
    CALLED(cuGetErrorName);
    *out = error == 0 ? "CUDA_SUCCESS" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == 600 ? "CUDA_ERROR_NOT_READY" : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(int error, const char **out)
{
    CALLED(cuGetErrorString);
    *out = error == 0 ? "no error" : error == 700 ? "an illegal memory access was encountered" : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The newest function of this name that `version` knows, of the flavour that the flags ask for. */
static CUresult look_up(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    int want = flags >> 1 & 1;
    const struct entry *best = NULL;
    for (int i = 0; i < FUNCTIONS; i++) {
        const struct entry *e = &fake_entries[i];
        if (strcmp(e->base, symbol) || e->since > version || (e->per_thread && !want))
            continue;
        if (!best || e->per_thread > best->per_thread ||
            (e->per_thread == best->per_thread && e->since >= best->since))
            best = e;
    }
    *out = best ? best->address : NULL;
    if (status)
        *status = best ? 0 : 1;
    return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{ CALLED(cuGetProcAddress); return look_up(symbol, out, version, flags, NULL); }
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status)
{ CALLED(cuGetProcAddress_v2); return look_up(symbol, out, version, flags, status); }

EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    CALLED(cuGetExportTable);
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
