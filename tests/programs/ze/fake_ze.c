/* A driver for Level Zero's real loader that has no device: ZE_ENABLE_ALT_DRIVERS names it. It keeps account of its
 * objects as far as the programs here look at them, pretends to run commands (fake_device.c), and counts calls. All
 * other functions of the model, which count alone, and the tables that the loader asks for, are made by
 * tests/src/fake_ze.rs.
 *
 * Like drivers of vendors it exports all of its functions under the API's own names, and fills its tables with them. */
#include "fake_ze.h"

unsigned long fake_counts[FUNCTIONS];

/* What the programs ask, to compare it with their own account. */
EXPORT unsigned long fake_count(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(fake_names[i], name) == 0)
            return fake_counts[i];
    return 0;
}

static struct object driver, device;

ze_result_t make(void *place, const char *text) {
    struct object *object = calloc(1, sizeof *object);
    if (text)
        snprintf(object->text, sizeof object->text, "%s", text);
    memcpy(place, &object, sizeof object);
    return ZE_RESULT_SUCCESS;
}

ze_result_t end(void *handle) {
    if (!handle)
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    /* No object is at an odd address. */
    if ((uintptr_t)handle & 1)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    free(of(handle)->jobs);
    free(handle);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t fill(uint32_t *count, void *places, void *object) {
    if (*count == 0)
        *count = 1;
    else if (places)
        memcpy(places, &object, sizeof object);
    if (*count > 1)
        *count = 1;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t zeInit(ze_init_flags_t flags) {
    COUNT(zeInit);
    return flags > 3 ? ZE_RESULT_ERROR_INVALID_ENUMERATION : ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *drivers) {
    COUNT(zeDriverGet);
    return fill(count, drivers, &driver);
}
EXPORT ze_result_t zeDeviceGet(ze_driver_handle_t of_driver, uint32_t *count, ze_device_handle_t *devices) {
    COUNT(zeDeviceGet);
    if (of((void *)of_driver) != &driver)
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return fill(count, devices, &device);
}
EXPORT ze_result_t zeDriverGetApiVersion(ze_driver_handle_t d, ze_api_version_t *version) {
    COUNT(zeDriverGetApiVersion);
    (void)d;
    *version = ZE_API_VERSION_1_4;
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t d, uint32_t *count,
                                                  ze_driver_extension_properties_t *all) {
    COUNT(zeDriverGetExtensionProperties);
    (void)d;
    if (*count == 0 || *count > 12)
        *count = 12;
    for (uint32_t i = 0; all && i < *count; i++) {
        snprintf(all[i].name, sizeof all[i].name, "ZE_extension_%u", i);
        all[i].version = i;
    }
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeDeviceGetProperties(ze_device_handle_t d, ze_device_properties_t *properties) {
    COUNT(zeDeviceGetProperties);
    (void)d;
    properties->type = ZE_DEVICE_TYPE_GPU;
    properties->flags = ZE_DEVICE_PROPERTY_FLAG_INTEGRATED | ZE_DEVICE_PROPERTY_FLAG_ECC;
    strcpy(properties->name, "fake device");
    memset(properties->uuid.id, 0xfa, sizeof properties->uuid.id);
    properties->coreClockRate = 1100;
    properties->numSlices = properties->numSubslicesPerSlice = properties->numEUsPerSubslice = 4;
    fake_timer(properties);
    for (ze_base_properties_t *next = properties->pNext; next; next = next->pNext) {
        if (next->stype == ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES)
            ((ze_float_atomic_ext_properties_t *)next)->fp32Flags = ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD;
        if (next->stype == ZE_STRUCTURE_TYPE_DEVICE_RAYTRACING_EXT_PROPERTIES)
            ((ze_device_raytracing_ext_properties_t *)next)->maxBVHLevels = 7;
    }
    return ZE_RESULT_SUCCESS;
}
/* The first group runs everything, the second only copies. */
EXPORT ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t d, uint32_t *count,
                                                          ze_command_queue_group_properties_t *groups) {
    COUNT(zeDeviceGetCommandQueueGroupProperties);
    (void)d;
    if (*count == 0 || *count > 2)
        *count = 2;
    for (uint32_t i = 0; groups && i < *count; i++) {
        groups[i].flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY | (i ? 0 : ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE);
        groups[i].numQueues = 1;
    }
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeContextCreate(ze_driver_handle_t d, const ze_context_desc_t *desc, ze_context_handle_t *context) {
    COUNT(zeContextCreate);
    (void)d;
    return desc ? make(context, NULL) : ZE_RESULT_ERROR_INVALID_NULL_POINTER;
}
EXPORT ze_result_t zeMemAllocHost(ze_context_handle_t c, const ze_host_mem_alloc_desc_t *desc, size_t size,
                                  size_t alignment, void **place) {
    COUNT(zeMemAllocHost);
    (void)c, (void)desc;
    *place = NULL;
    if (size < (1ul << 40) && posix_memalign(place, alignment > 16 ? alignment : 16, size))
        *place = NULL;
    return *place ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}
EXPORT ze_result_t zeMemAllocDevice(ze_context_handle_t c, const ze_device_mem_alloc_desc_t *desc, size_t size,
                                    size_t alignment, ze_device_handle_t d, void **place) {
    COUNT(zeMemAllocDevice);
    (void)c, (void)desc, (void)alignment, (void)d;
    *place = size < (1ul << 40) ? malloc(size) : NULL;
    return *place ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}
EXPORT ze_result_t zeMemFree(ze_context_handle_t c, void *memory) {
    COUNT(zeMemFree);
    (void)c;
    fake_freed(memory);
    free(memory);
    return ZE_RESULT_SUCCESS;
}
/* A program with the flag -bad does not build; of one with a level something is said. */
EXPORT ze_result_t zeModuleCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_module_desc_t *desc,
                                  ze_module_handle_t *module, ze_module_build_log_handle_t *log) {
    COUNT(zeModuleCreate);
    (void)c, (void)d;
    int bad = desc->pBuildFlags && strstr(desc->pBuildFlags, "-bad");
    int level = desc->pBuildFlags && strstr(desc->pBuildFlags, "-ze-opt-level");
    if (log)
        make(log, bad ? "error: that was bad" : level ? "note: optimized" : "");
    return bad ? ZE_RESULT_ERROR_MODULE_BUILD_FAILURE : make(module, NULL);
}
EXPORT ze_result_t zeModuleDestroy(ze_module_handle_t module) {
    COUNT(zeModuleDestroy);
    return end(module);
}
EXPORT ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t log, size_t *size, char *text) {
    COUNT(zeModuleBuildLogGetString);
    *size = strlen(of((void *)log)->text) + 1;
    if (text)
        strcpy(text, of((void *)log)->text);
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t log) {
    COUNT(zeModuleBuildLogDestroy);
    return end(log);
}
EXPORT ze_result_t zeModuleGetKernelNames(ze_module_handle_t module, uint32_t *count, const char **names) {
    COUNT(zeModuleGetKernelNames);
    (void)module;
    if (*count == 0 || *count > 2)
        *count = 2;
    for (uint32_t i = 0; names && i < *count; i++)
        names[i] = i ? "saxpy" : "scale";
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t *desc, ze_kernel_handle_t *kernel) {
    COUNT(zeKernelCreate);
    (void)module;
    if (strcmp(desc->pKernelName, "nobody") == 0)
        return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    return make(kernel, desc->pKernelName);
}
EXPORT ze_result_t zeKernelDestroy(ze_kernel_handle_t kernel) {
    COUNT(zeKernelDestroy);
    return end(kernel);
}
EXPORT ze_result_t zeKernelGetName(ze_kernel_handle_t kernel, size_t *size, char *name) {
    COUNT(zeKernelGetName);
    size_t own = strlen(of((void *)kernel)->text) + 1;
    if (name && *size >= own)
        strcpy(name, of((void *)kernel)->text);
    *size = own;
    return ZE_RESULT_SUCCESS;
}
/* Not in the model, and in no header. */
static int twice(int number) {
    return 2 * number;
}
EXPORT ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t d, const char *name, void **function) {
    COUNT(zeDriverGetExtensionFunctionAddress);
    (void)d;
    if (strcmp(name, "zexFakeTwice") == 0)
        *function = (void *)twice;
    else if (strcmp(name, "zeMemFree") == 0)
        *function = (void *)zeMemFree;
    else if ((*function = fake_newer(name)))
        return ZE_RESULT_SUCCESS;
    else
        return ZE_RESULT_ERROR_INVALID_FUNCTION_NAME;
    return ZE_RESULT_SUCCESS;
}
