/* A library that calls OpenCL from its constructor, which runs before those of
 * libraries that are preloaded, and before a shared sanitizer's. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <stddef.h>

static cl_uint count;
static int found;

__attribute__((constructor)) static void early(void)
{
    found = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;
    clGetPlatformIDs(0, NULL, &count);
}

int early_platforms(void);
int early_platforms(void)
{
    return found ? (int)count : -1;
}
