/* Calls Level Zero's loader in the ways in which programs come to its functions, says what each call returned, and in
 * EXPECT lines what it has called. work WAY PART:
 *
 * linked   the functions that it is linked to
 * late     opens the loader, and asks for each function by its name
 * tables   opens the loader, and calls the functions in the tables that the loader fills in, as a program does that
 *          has the loader's static part inside */
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum { LINKED, LATE, TABLES } way;
static void *loader;

/* What the program has called, by name. */
static struct { const char *name; unsigned long calls; } called[128];
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void count(const char *name) {
    pthread_mutex_lock(&counting);
    int i = 0;
    while (called[i].name && strcmp(called[i].name, name) != 0)
        i++;
    called[i].name = name;
    called[i].calls++;
    pthread_mutex_unlock(&counting);
}

static void *by_name(const char *name) {
    void *found = dlsym(loader, name);
    if (!found) {
        printf("no %s\n", name);
        exit(9);
    }
    return found;
}

static struct {
    ze_global_dditable_t global;
    ze_driver_dditable_t driver;
    ze_device_dditable_t device;
    ze_context_dditable_t context;
    ze_command_queue_dditable_t queue;
    ze_command_list_dditable_t list;
    ze_fence_dditable_t fence;
    ze_event_pool_dditable_t pool;
    ze_event_dditable_t event;
    ze_mem_dditable_t mem;
    ze_module_dditable_t module;
    ze_module_build_log_dditable_t log;
    ze_kernel_dditable_t kernel;
} table;

/* Each function's place in its table. */
#define FUNCTIONS(F)                                                                                          \
    F(zeInit, global.pfnInit) F(zeDriverGet, driver.pfnGet) F(zeDriverGetApiVersion, driver.pfnGetApiVersion) \
    F(zeDriverGetExtensionProperties, driver.pfnGetExtensionProperties)                                       \
    F(zeDriverGetExtensionFunctionAddress, driver.pfnGetExtensionFunctionAddress)                             \
    F(zeDeviceGet, device.pfnGet) F(zeDeviceGetProperties, device.pfnGetProperties)                           \
    F(zeContextCreate, context.pfnCreate) F(zeContextDestroy, context.pfnDestroy)                             \
    F(zeCommandQueueCreate, queue.pfnCreate) F(zeCommandQueueDestroy, queue.pfnDestroy)                       \
    F(zeCommandQueueExecuteCommandLists, queue.pfnExecuteCommandLists)                                        \
    F(zeCommandQueueSynchronize, queue.pfnSynchronize) F(zeCommandListCreate, list.pfnCreate)                 \
    F(zeCommandListCreateImmediate, list.pfnCreateImmediate) F(zeCommandListDestroy, list.pfnDestroy)         \
    F(zeCommandListClose, list.pfnClose) F(zeCommandListReset, list.pfnReset)                                 \
    F(zeCommandListAppendLaunchKernel, list.pfnAppendLaunchKernel)                                            \
    F(zeCommandListAppendMemoryCopy, list.pfnAppendMemoryCopy)                                                \
    F(zeCommandListAppendMemoryFill, list.pfnAppendMemoryFill)                                                \
    F(zeCommandListAppendBarrier, list.pfnAppendBarrier) F(zeFenceCreate, fence.pfnCreate)                    \
    F(zeFenceDestroy, fence.pfnDestroy) F(zeFenceHostSynchronize, fence.pfnHostSynchronize)                   \
    F(zeEventPoolCreate, pool.pfnCreate) F(zeEventPoolDestroy, pool.pfnDestroy)                               \
    F(zeEventCreate, event.pfnCreate) F(zeEventDestroy, event.pfnDestroy)                                     \
    F(zeEventQueryStatus, event.pfnQueryStatus) F(zeEventHostReset, event.pfnHostReset) F(zeEventHostSynchronize, event.pfnHostSynchronize)           \
    F(zeEventQueryKernelTimestamp, event.pfnQueryKernelTimestamp) F(zeMemAllocHost, mem.pfnAllocHost)         \
    F(zeMemAllocDevice, mem.pfnAllocDevice) F(zeMemFree, mem.pfnFree) F(zeModuleCreate, module.pfnCreate)     \
    F(zeModuleDestroy, module.pfnDestroy) F(zeModuleGetKernelNames, module.pfnGetKernelNames)                 \
    F(zeModuleBuildLogGetString, log.pfnGetString) F(zeModuleBuildLogDestroy, log.pfnDestroy)                 \
    F(zeKernelCreate, kernel.pfnCreate) F(zeKernelDestroy, kernel.pfnDestroy)                                 \
    F(zeKernelGetName, kernel.pfnGetName) F(zeKernelSetGroupSize, kernel.pfnSetGroupSize)                     \
    F(zeKernelSetArgumentValue, kernel.pfnSetArgumentValue)

#ifdef ONLY_LATE
#define LINKED_TO(function) NULL
#else
#define LINKED_TO(function) ((void *)function)
#endif

static void *find(const char *name) {
    count(name);
    if (way == LATE)
        return by_name(name);
#define FIND(function, place)      \
    if (strcmp(name, #function) == 0) \
        return way == TABLES ? (void *)table.place : LINKED_TO(function);
    FUNCTIONS(FIND)
    abort();
}

/* Calls a function in the way that was asked for, and keeps account of it. */
#define CALL(function, ...) ((__typeof__(&function))find(#function))(__VA_ARGS__)
/* The same, and says what it returned. */
#define SAY(function, ...) printf(#function " %#x\n", CALL(function, __VA_ARGS__))

static void fill_in(const char *name, void *place) {
    typedef ze_result_t (*Fill)(ze_api_version_t, void *);
    count(name);
    printf("%s %#x\n", name, ((Fill)by_name(name))(ZE_API_VERSION_1_4, place));
}

/* As the loader's static part begins: it knows functions that are in no header. */
static void fill_in_tables(void) {
    ((ze_result_t(*)(void))by_name("zeLoaderInit"))();
    fill_in("zeGetGlobalProcAddrTable", &table.global);
    fill_in("zeGetDriverProcAddrTable", &table.driver);
    fill_in("zeGetDeviceProcAddrTable", &table.device);
    fill_in("zeGetContextProcAddrTable", &table.context);
    fill_in("zeGetCommandQueueProcAddrTable", &table.queue);
    fill_in("zeGetCommandListProcAddrTable", &table.list);
    fill_in("zeGetFenceProcAddrTable", &table.fence);
    fill_in("zeGetEventPoolProcAddrTable", &table.pool);
    fill_in("zeGetEventProcAddrTable", &table.event);
    fill_in("zeGetMemProcAddrTable", &table.mem);
    fill_in("zeGetModuleProcAddrTable", &table.module);
    fill_in("zeGetModuleBuildLogProcAddrTable", &table.log);
    fill_in("zeGetKernelProcAddrTable", &table.kernel);
}

static ze_driver_handle_t driver;
static ze_device_handle_t device;
static ze_context_handle_t context;

static void begin(void) {
    SAY(zeInit, 0);
    uint32_t n = 0;
    SAY(zeDriverGet, &n, NULL);
    SAY(zeDriverGet, &n, &driver);
    /* With a count of 0 nothing is filled in, whatever the place. */
    ze_device_handle_t untouched[64] = {(void *)0x5a5a};
    n = 0;
    SAY(zeDeviceGet, driver, &n, untouched);
    printf("%u devices, untouched %d\n", n, untouched[0] == (void *)0x5a5a);
    n = 1;
    SAY(zeDeviceGet, driver, &n, &device);
    /* The driver does not look behind this, and the program has not set it. */
    ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, (void *)0x7abcdef00000, 0};
    SAY(zeContextCreate, driver, &desc, &context);
}

static void queries(void) {
    ze_api_version_t version = 0;
    SAY(zeDriverGetApiVersion, driver, &version);
    uint32_t n = 0;
    SAY(zeDriverGetExtensionProperties, driver, &n, NULL);
    static ze_driver_extension_properties_t extensions[32];
    n = 32;
    SAY(zeDriverGetExtensionProperties, driver, &n, extensions);
    ze_device_raytracing_ext_properties_t rays = {ZE_STRUCTURE_TYPE_DEVICE_RAYTRACING_EXT_PROPERTIES, NULL, 0, 0};
    ze_base_properties_t unknown = {0x7ead, &rays};
    ze_float_atomic_ext_properties_t atomics = {.stype = ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES, .pNext = &unknown};
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &atomics};
    SAY(zeDeviceGetProperties, device, &properties);
    printf("%#x %u extensions, %s, %u levels\n", version, n, properties.name, rays.maxBVHLevels);
    void *function = NULL;
    SAY(zeDriverGetExtensionFunctionAddress, driver, "zexFakeTwice", &function);
    printf("twice 21 is %d\n", ((int (*)(int))function)(21));
    SAY(zeDriverGetExtensionFunctionAddress, driver, "zexNobody", &function);
    void *memory = NULL;
    ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    SAY(zeMemAllocHost, context, &desc, 16, 8, &memory);
    SAY(zeDriverGetExtensionFunctionAddress, driver, "zeMemFree", &function);
    count("zeMemFree");
    printf("zeMemFree by address %#x\n", ((__typeof__(&zeMemFree))function)(context, memory));
}

/* A loader with several drivers of Debian 12's day forgets to wrap the log of what does not build, and ends the program
 * that reads it. */
static int builds_badly = 1;

static ze_module_handle_t build(void) {
    ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV};
    desc.inputSize = 4;
    desc.pInputModule = (const uint8_t *)"code";
    desc.pBuildFlags = builds_badly ? "-bad" : "-good";
    ze_module_handle_t module = NULL;
    ze_module_build_log_handle_t log = NULL;
    SAY(zeModuleCreate, context, device, &desc, &module, &log);
    size_t size = 0;
    SAY(zeModuleBuildLogGetString, log, &size, NULL);
    char text[64] = "";
    SAY(zeModuleBuildLogGetString, log, &size, text);
    printf("%zu %s\n", size, text);
    SAY(zeModuleBuildLogDestroy, log);
    desc.pBuildFlags = "-ze-opt-level=2";
    SAY(zeModuleCreate, context, device, &desc, &module, &log);
    SAY(zeModuleBuildLogDestroy, log);
    const char *names[4];
    uint32_t n = 4;
    SAY(zeModuleGetKernelNames, module, &n, names);
    printf("%u %s %s\n", n, names[0], names[1]);
    return module;
}

static void commands(int leaks) {
    ze_module_handle_t module = build();
    ze_kernel_desc_t named = {ZE_STRUCTURE_TYPE_KERNEL_DESC, NULL, 0, "nobody"};
    ze_kernel_handle_t kernel = NULL;
    SAY(zeKernelCreate, module, &named, &kernel);
    named.pKernelName = "saxpy";
    SAY(zeKernelCreate, module, &named, &kernel);
    char name[64];
    size_t size = sizeof name;
    SAY(zeKernelGetName, kernel, &size, name);
    SAY(zeKernelSetGroupSize, kernel, 32, 4, 1);
    float a = 2.5f;
    SAY(zeKernelSetArgumentValue, kernel, 0, sizeof a, &a);

    ze_external_memory_export_desc_t exported = {ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC, NULL,
                                                 ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF};
    ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .pNext = &exported};
    void *memory = NULL, *too_much = NULL;
    SAY(zeMemAllocDevice, context, &on_device, 4096, 64, device, &memory);
    SAY(zeMemAllocDevice, context, &on_device, 1ul << 50, 64, device, &too_much);

    ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                          .priority = ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH};
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, NULL,
                                      ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, 4};
    ze_event_desc_t event_desc = {ZE_STRUCTURE_TYPE_EVENT_DESC, NULL, 0, 0, ZE_EVENT_SCOPE_FLAG_HOST};
    ze_fence_desc_t fence_desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, NULL, 0};
    ze_command_queue_handle_t queue = NULL;
    ze_command_list_handle_t list = NULL, immediate = NULL;
    ze_event_pool_handle_t pool = NULL;
    ze_event_handle_t events[2] = {NULL, NULL};
    ze_fence_handle_t fence = NULL;
    SAY(zeCommandQueueCreate, context, device, &queue_desc, &queue);
    SAY(zeCommandListCreate, context, device, &list_desc, &list);
    SAY(zeCommandListCreateImmediate, context, device, &queue_desc, &immediate);
    SAY(zeEventPoolCreate, context, &pool_desc, 1, &device, &pool);
    SAY(zeEventCreate, pool, &event_desc, &events[0]);
    SAY(zeEventCreate, pool, &event_desc, &events[1]);
    SAY(zeFenceCreate, queue, &fence_desc, &fence);

    ze_group_count_t groups = {8, 2, 1};
    char source[64] = "", pattern = 9;
    for (int i = 0; i < 3; i++) {
        SAY(zeCommandListAppendMemoryCopy, list, memory, source, sizeof source, events[0], 0, NULL);
        SAY(zeCommandListAppendLaunchKernel, list, kernel, &groups, events[1], 1, events);
        SAY(zeCommandListAppendBarrier, list, NULL, 2, events);
        SAY(zeCommandListClose, list);
        SAY(zeCommandQueueExecuteCommandLists, queue, 1, &list, fence);
        SAY(zeCommandQueueSynchronize, queue, UINT64_MAX);
        SAY(zeFenceHostSynchronize, fence, UINT64_MAX);
        SAY(zeCommandListReset, list);
        SAY(zeEventHostReset, events[0]);
        SAY(zeEventHostReset, events[1]);
    }
    SAY(zeCommandListAppendMemoryFill, immediate, memory, &pattern, 1, 4096, events[0], 0, NULL);
    SAY(zeCommandListAppendLaunchKernel, immediate, kernel, &groups, events[1], 1, events);
    int polls = 1;
    while (CALL(zeEventQueryStatus, events[1]) == ZE_RESULT_NOT_READY)
        polls++;
    printf("ready at poll %d\n", polls);
    SAY(zeEventHostSynchronize, events[1], 1000);
    ze_kernel_timestamp_result_t times;
    SAY(zeEventQueryKernelTimestamp, events[1], &times);
    printf("kernel took %lu ticks\n", (unsigned long)(times.global.kernelEnd - times.global.kernelStart));

    SAY(zeFenceDestroy, fence);
    SAY(zeEventDestroy, events[0]);
    if (!leaks)
        SAY(zeEventDestroy, events[1]);
    SAY(zeEventPoolDestroy, pool);
    SAY(zeCommandListDestroy, immediate);
    SAY(zeCommandListDestroy, list);
    SAY(zeCommandQueueDestroy, queue);
    if (!leaks)
        SAY(zeMemFree, context, memory);
    SAY(zeKernelDestroy, kernel);
    SAY(zeModuleDestroy, module);
}

static void *appends(void *list) {
    for (int i = 0; i < 500; i++)
        CALL(zeCommandListAppendBarrier, list, NULL, 0, NULL);
    return NULL;
}

static void threads(void) {
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_command_list_handle_t lists[8];
    pthread_t ids[8];
    for (int i = 0; i < 8; i++)
        CALL(zeCommandListCreateImmediate, context, device, &desc, &lists[i]);
    for (int i = 0; i < 8; i++)
        pthread_create(&ids[i], NULL, appends, lists[i]);
    for (int i = 0; i < 8; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < 8; i++)
        CALL(zeCommandListDestroy, lists[i]);
}

/* What the driver was called, where it has counted more or fewer calls than the program made. */
static void compare(void) {
    const char *path = getenv("FAKE_ZE");
    void *fake = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    unsigned long (*fake_count)(const char *) = fake ? (unsigned long (*)(const char *))dlsym(fake, "fake_count") : NULL;
    printf("EXPECT");
    for (int i = 0; called[i].name; i++)
        printf(" %s=%lu", called[i].name, called[i].calls);
    printf("\n");
    for (int i = 0; fake_count && called[i].name; i++) {
        /* The loader itself initializes drivers, and fills in tables. */
        if (strstr(called[i].name, "ProcAddrTable") || strcmp(called[i].name, "zeInit") == 0)
            continue;
        /* For times of commands there are events that are not the program's, and these are asked for them. */
        static const char *const others[] = {"zeEventPoolCreate", "zeEventCreate", "zeEventHostReset",
                                             "zeEventQueryKernelTimestamp", "zeEventDestroy", "zeEventPoolDestroy",
                                             "zeDeviceGetProperties"};
        int by_others = 0;
        for (size_t j = 0; j < sizeof others / sizeof *others; j++)
            by_others |= strcmp(called[i].name, others[j]) == 0;
        unsigned long has = fake_count(called[i].name);
        if (has < called[i].calls || (!by_others && has != called[i].calls))
            printf("the driver has %lu of %s\n", has, called[i].name);
    }
    printf(fake_count ? "compared\n" : "not compared\n");
}

int main(int argc, char **argv) {
    const char *part = argc > 2 ? argv[2] : "";
    way = argc < 2 || strcmp(argv[1], "linked") == 0 ? LINKED : strcmp(argv[1], "late") == 0 ? LATE : TABLES;
    if (way != LINKED && !(loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL)))
        return 8;
    if (way == TABLES)
        fill_in_tables();
    begin();
    if (strcmp(part, "queries") == 0)
        queries();
    else if (strcmp(part, "threads") == 0)
        threads();
    else {
        builds_badly = strcmp(part, "several") != 0;
        commands(strcmp(part, "leaks") == 0);
    }
    SAY(zeContextDestroy, context);
    /* A call that fails, as the last one. */
    SAY(zeInit, 0x10);
    compare();
    fflush(stdout);
    return 7;
}
