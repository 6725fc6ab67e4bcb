/* Misuse of Level Zero on the fake driver: what `hetrace lint` is to find. faults WHICH does one thing wrong (its number in
 * `parts`), or all of it right; the driver lets most of it pass. */
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK(call)                                     \
    do {                                             \
        ze_result_t result_ = (call);                \
        if (result_ != ZE_RESULT_SUCCESS) {          \
            printf(#call " = %#x\n", result_);       \
            exit(9);                                 \
        }                                            \
    } while (0)

/* What is to be wrong. */
static const char *wrong;
static int is(const char *part) {
    return strcmp(wrong, part) == 0;
}

static ze_driver_handle_t driver;
static ze_device_handle_t device;
static ze_context_handle_t context, other;
static ze_module_handle_t module;
static ze_command_queue_handle_t queue, second;
static ze_kernel_handle_t kernel;
static ze_event_pool_handle_t pool;

static ze_command_queue_handle_t new_queue(void) {
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_queue_handle_t made;
    OK(zeCommandQueueCreate(context, device, &desc, &made));
    return made;
}

static ze_command_list_handle_t new_list(uint32_t engine, uint32_t flags) {
    ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = engine, .flags = flags};
    ze_command_list_handle_t made;
    OK(zeCommandListCreate(context, device, &desc, &made));
    return made;
}

static ze_command_list_handle_t new_immediate(uint32_t flags) {
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = flags,
                                    .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t made;
    OK(zeCommandListCreateImmediate(context, device, &desc, &made));
    return made;
}

static ze_event_handle_t new_event(uint32_t index) {
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = index};
    ze_event_handle_t made;
    OK(zeEventCreate(pool, &desc, &made));
    return made;
}

static void launch(ze_command_list_handle_t list, ze_event_handle_t signals, uint32_t n, ze_event_handle_t *waits) {
    ze_group_count_t count = {4, 1, 1};
    OK(zeCommandListAppendLaunchKernel(list, kernel, &count, signals, n, waits));
}

static void execute(ze_command_list_handle_t list, ze_fence_handle_t fence) {
    OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
}

static void wait_for_queue(void) {
    OK(zeCommandQueueSynchronize(queue, UINT64_MAX));
}

/* Newer than the headers. */
static void wait_for_list(ze_command_list_handle_t list) {
    void *function = NULL;
    OK(zeDriverGetExtensionFunctionAddress(driver, "zeCommandListHostSynchronize", &function));
    OK(((ze_result_t(*)(ze_command_list_handle_t, uint64_t))function)(list, UINT64_MAX));
}

static void *memory(ze_context_handle_t of) {
    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *made;
    OK(zeMemAllocDevice(of, &desc, 4096, 64, device, &made));
    return made;
}

static void ask(void) {
    uint32_t count = 0;
    OK(zeDeviceGetCommandQueueGroupProperties(device, &count, NULL));
    ze_command_queue_group_properties_t groups[4];
    memset(groups, 0, sizeof groups);
    for (int i = 0; i < 4; i++)
        groups[i].stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
    OK(zeDeviceGetCommandQueueGroupProperties(device, &count, groups));
}

static void start(void) {
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_module_desc_t code = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV};
    ze_kernel_desc_t named = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "scale"};
    ze_event_pool_desc_t events = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 8};
    uint32_t one = 1;
    OK(zeInit(0));
    OK(zeDriverGet(&one, &driver));
    OK(zeDeviceGet(driver, &one, &device));
    if (!is("engines-not-asked"))
        ask();
    if (is("wrong-tag"))
        desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
    OK(zeContextCreate(driver, &desc, &context));
    desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
    OK(zeContextCreate(driver, &desc, &other));
    queue = new_queue();
    second = new_queue();
    OK(zeModuleCreate(context, device, &code, &module, NULL));
    OK(zeKernelCreate(module, &named, &kernel));
    OK(zeKernelSetGroupSize(kernel, 8, 4, 1));
    OK(zeEventPoolCreate(context, &events, 1, &device, &pool));
}

/* Lists: closed before they are executed, emptied when they are over. */
static void lists(void) {
    ze_command_list_handle_t list = new_list(is("wrong-engine") ? 1 : 0, 0);
    launch(list, NULL, 0, NULL);
    if (!is("list-state open"))
        OK(zeCommandListClose(list));
    if (is("list-state closed"))
        OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    execute(list, NULL);
    if (!is("list-state in flight"))
        wait_for_queue();
    OK(zeCommandListReset(list));
    wait_for_queue();
    launch(list, NULL, 0, NULL);
    OK(zeCommandListClose(list));
    execute(list, NULL);
    if (!is("released-in-use list"))
        wait_for_queue();
    OK(zeCommandListDestroy(list));
    wait_for_queue();
}

/* Events: reset between two uses; waited for by what comes behind what signals them. */
static void events(void) {
    ze_command_list_handle_t list = new_immediate(2);
    ze_event_handle_t event = new_event(0), last = new_event(is("slot-in-use") ? 0 : 1);
    for (int i = 0; i < 2; i++) {
        launch(list, event, 0, NULL);
        launch(list, last, 1, &event);
        OK(zeEventHostSynchronize(last, UINT64_MAX));
        if (!is("event-not-reset"))
            OK(zeEventHostReset(event));
        OK(zeEventHostReset(last));
    }
    if (is("deadlock"))
        launch(list, NULL, 1, &event);
    if (!is("event-never-set"))
        launch(list, event, 0, NULL);
    launch(list, NULL, 1, &event);
    if (!is("deadlock") && !is("event-never-set"))
        wait_for_list(list);
    OK(zeCommandListDestroy(list));
    OK(zeEventDestroy(last));
    OK(zeEventDestroy(event));
}

static void fences(void) {
    ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    ze_command_list_handle_t list = new_list(0, 0);
    ze_fence_handle_t fence;
    OK(zeFenceCreate(is("wrong-queue") ? second : queue, &desc, &fence));
    launch(list, NULL, 0, NULL);
    OK(zeCommandListClose(list));
    for (int i = 0; i < 2; i++) {
        execute(list, fence);
        OK(zeFenceHostSynchronize(fence, UINT64_MAX));
        if (!is("event-not-reset fence"))
            OK(zeFenceReset(fence));
    }
    OK(zeCommandListDestroy(list));
    if (!is("leak"))
        OK(zeFenceDestroy(fence));
    else
        OK(zeFenceCreate(queue, &desc, &fence));
}

static char host[4096];

static void copies(void) {
    ze_command_list_handle_t list = new_immediate(2);
    char *on_device = memory(is("wrong-context memory") ? other : context);
    OK(zeCommandListAppendMemoryCopy(list, on_device, is("null-argument copy") ? NULL : host, is("out-of-bounds") ? 5000 : 4096,
                                     NULL, 0, NULL));
    if (!is("released-in-use"))
        wait_for_list(list);
    OK(zeMemFree(is("wrong-context memory") ? other : context, on_device));
    wait_for_list(list);
    if (is("use-after-release"))
        OK(zeCommandListAppendMemoryCopy(list, on_device, host, 64, NULL, 0, NULL));
    wait_for_list(list);
    OK(zeCommandListDestroy(list));
}

static ze_command_list_handle_t common;

static void *appends(void *nothing) {
    OK(zeCommandListAppendBarrier(common, NULL, 0, NULL));
    return nothing;
}

/* Two threads append to a list: both are in the driver, which is busy, before one of them comes back. */
static void threads(void) {
    if (!is("concurrent-use"))
        return;
    void *fake = dlopen(getenv("FAKE_ZE"), RTLD_NOW);
    void (*busy)(int) = fake ? (void (*)(int))dlsym(fake, "fake_busy") : NULL;
    unsigned long (*count)(const char *) = fake ? (unsigned long (*)(const char *))dlsym(fake, "fake_count") : NULL;
    if (!busy || !count)
        exit(8);
    pthread_t thread[2];
    common = new_immediate(2);
    unsigned long before = count("zeCommandListAppendBarrier");
    busy(1);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, appends, NULL);
    while (count("zeCommandListAppendBarrier") < before + 2)
        nanosleep(&(struct timespec){0, 100000}, NULL);
    busy(0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    wait_for_list(common);
    OK(zeCommandListDestroy(common));
}

/* A thread is in the driver, and stays there when the program ends. */
static void stays(void) {
    void *fake = dlopen(getenv("FAKE_ZE"), RTLD_NOW);
    void (*busy)(int) = fake ? (void (*)(int))dlsym(fake, "fake_busy") : NULL;
    unsigned long (*count)(const char *) = fake ? (unsigned long (*)(const char *))dlsym(fake, "fake_count") : NULL;
    if (!busy || !count)
        exit(8);
    pthread_t thread;
    common = new_immediate(2);
    unsigned long before = count("zeCommandListAppendBarrier");
    busy(1);
    pthread_create(&thread, NULL, appends, NULL);
    while (count("zeCommandListAppendBarrier") == before)
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void refused(void) {
    ze_kernel_desc_t named = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "scale"};
    ze_kernel_handle_t made = NULL;
    if (is("null-argument"))
        printf("refused: %#x\n", zeKernelDestroy(NULL));
    if (is("unknown-object"))
        printf("refused: %#x\n", zeKernelDestroy((ze_kernel_handle_t)(uintptr_t)0x1235));
    /* What was on the stack before; this driver does not look there. */
    ze_device_compute_properties_t properties;
    memset(&properties, 0xa5, sizeof properties);
    properties.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
    if (!is("uninitialized-next"))
        properties.pNext = NULL;
    OK(zeDeviceGetComputeProperties(device, &properties));
    OK(zeKernelCreate(module, &named, &made));
    OK(zeKernelDestroy(made));
}

static void end(void) {
    OK(zeKernelDestroy(kernel));
    ze_event_handle_t event = is("outlives-owner") ? new_event(3) : NULL;
    OK(zeEventPoolDestroy(pool));
    if (event)
        OK(zeEventDestroy(event));
    OK(zeModuleDestroy(module));
    OK(zeCommandQueueDestroy(queue));
    OK(zeCommandQueueDestroy(second));
    OK(zeContextDestroy(context));
    OK(zeContextDestroy(other));
}

int main(int argc, char **argv) {
    wrong = argc > 1 ? argv[1] : "nothing";
    start();
    lists();
    events();
    fences();
    copies();
    threads();
    refused();
    if (is("unfinished-call"))
        stays();
    else
        end();
    return 7;
}
