/* What programs do that enqueue commands on the fake driver's device, whichever way. */
#pragma once
#include <dlfcn.h>
#include "../../../include/hetrace.h"

#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK(call)                                     \
    do {                                             \
        ze_result_t result_ = (call);                \
        if (result_ != ZE_RESULT_SUCCESS) {          \
            printf(#call " = %#x\n", result_);       \
            exit(9);                                 \
        }                                            \
    } while (0)

/* Not by each program. */
#define USED __attribute__((unused))

enum { IN_ORDER = 2, LIST_IN_ORDER = 8 };

static ze_driver_handle_t driver;
static ze_device_handle_t device;
static ze_context_handle_t context;
static ze_module_handle_t module;
static ze_command_queue_handle_t queue;
static void (*hold)(int);
static int (*say_ran)(void);

USED static void *newer(const char *name) {
    void *function = NULL;
    OK(zeDriverGetExtensionFunctionAddress(driver, name, &function));
    return function;
}

USED static ze_kernel_handle_t kernel(const char *name) {
    ze_kernel_desc_t desc = {ZE_STRUCTURE_TYPE_KERNEL_DESC, NULL, 0, name};
    ze_kernel_handle_t made;
    OK(zeKernelCreate(module, &desc, &made));
    OK(zeKernelSetGroupSize(made, 8, 4, 1));
    return made;
}

USED static ze_command_list_handle_t immediate(uint32_t flags) {
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = flags,
                                    .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t list;
    OK(zeCommandListCreateImmediate(context, device, &desc, &list));
    return list;
}

USED static ze_command_list_handle_t regular(uint32_t flags) {
    ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = flags};
    ze_command_list_handle_t list;
    OK(zeCommandListCreate(context, device, &desc, &list));
    return list;
}

static ze_event_pool_handle_t pools[16];
static int made_pools;

USED static ze_event_handle_t event_with(uint32_t flags) {
    ze_event_pool_desc_t desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, NULL, flags, 1};
    ze_event_desc_t each = {ZE_STRUCTURE_TYPE_EVENT_DESC, NULL, 0, ZE_EVENT_SCOPE_FLAG_HOST, 0};
    ze_event_handle_t made;
    OK(zeEventPoolCreate(context, &desc, 1, &device, &pools[made_pools]));
    OK(zeEventCreate(pools[made_pools++], &each, &made));
    return made;
}

USED static ze_event_handle_t event(uint32_t flags) {
    return event_with(flags | ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
}

USED static void launch(ze_command_list_handle_t list, const char *name, uint32_t groups, ze_event_handle_t signals) {
    ze_group_count_t count = {groups, 1, 1};
    OK(zeCommandListAppendLaunchKernel(list, kernel(name), &count, signals, 0, NULL));
}

USED static void execute(ze_command_list_handle_t list, ze_fence_handle_t fence) {
    OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
}

USED static void wait_for_queue(void) {
    OK(zeCommandQueueSynchronize(queue, UINT64_MAX));
}

/* Returns 0 if that is not the fake driver. */
static int is_ready(void) {
    void *fake = dlopen(getenv("FAKE_ZE"), RTLD_NOW);
    hold = fake ? (void (*)(int))dlsym(fake, "fake_hold") : NULL;
    say_ran = fake ? (int (*)(void))dlsym(fake, "fake_say_ran") : NULL;
    if (!hold || !say_ran)
        return 0;
    uint32_t n = 1;
    OK(zeInit(0));
    OK(zeDriverGet(&n, &driver));
    OK(zeDeviceGet(driver, &n, &device));
    ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, NULL, 0};
    OK(zeContextCreate(driver, &desc, &context));
    ze_module_desc_t code = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .inputSize = 4, .pInputModule = (const uint8_t *)"code"};
    OK(zeModuleCreate(context, device, &code, &module, NULL));
    ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
    return 1;
}

/* The driver says what ran. */
static int finish(void) {
    int was_across = say_ran();
    printf("across %d\n", was_across);
    wait_for_queue();
    OK(zeCommandQueueDestroy(queue));
    OK(zeContextDestroy(context));
    return 7;
}
