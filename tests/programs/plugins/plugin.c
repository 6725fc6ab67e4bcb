/* A plug-in that is linked to a loader of its own. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>

/* Makes 4 * times + 2 calls. */
int look(int times)
{
    cl_uint platforms = 0, devices = 0;
    cl_platform_id platform;
    cl_device_id device;
    char text[256];
    if (clGetPlatformIDs(0, NULL, &platforms) || clGetPlatformIDs(1, &platform, NULL))
        return 1;
    for (int i = 0; i < times; i++) {
        if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text, text, NULL) ||
            clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &devices) ||
            clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
            return 2;
        printf("%u platforms, first %s with %u devices, ", platforms, text, devices);
        if (clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof text, text, NULL))
            return 3;
        printf("first %s\n", text);
    }
    return 0;
}
