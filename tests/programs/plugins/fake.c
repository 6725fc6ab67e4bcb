/* A library in the loader's place that is no ICD loader: its objects are of its own
 * making, and no other library can do anything with them. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>

static int platform_of_mine, device_of_mine;

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    if (platforms && room)
        platforms[0] = (cl_platform_id)&platform_of_mine;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

static cl_int answer(const char *text, size_t size, void *value, size_t *size_ret)
{
    size_t need = strlen(text) + 1;
    if (value && size < need)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, text, need);
    if (size_ret)
        *size_ret = need;
    return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size, void *value,
                         size_t *size_ret)
{
    (void)name;
    if (platform != (cl_platform_id)&platform_of_mine)
        return CL_INVALID_PLATFORM;
    return answer("Fake platform", size, value, size_ret);
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                      cl_device_id *devices, cl_uint *count)
{
    (void)type;
    if (platform != (cl_platform_id)&platform_of_mine)
        return CL_INVALID_PLATFORM;
    if (devices && room)
        devices[0] = (cl_device_id)&device_of_mine;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void *value,
                       size_t *size_ret)
{
    (void)name;
    if (device != (cl_device_id)&device_of_mine)
        return CL_INVALID_DEVICE;
    return answer("Fake device", size, value, size_ret);
}
