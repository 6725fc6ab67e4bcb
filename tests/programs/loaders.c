/* Two loaders in one process, each behind a plug-in that is linked to it.
 *
 *   loaders FIRST.so SECOND.so ...
 *
 * Opens each in turn, uses it, and then all of them again.
 */
#define NO_LINKED_OPENCL
#include "cl_util.h"
#include <dlfcn.h>

static void use(int (*look)(int), int times)
{
    int failed = look(times);
    if (failed)
        fprintf(stderr, "loaders: failed at %d\n", failed);
    CHECK(!failed);
    CL_COUNT("clGetPlatformIDs", 2);
    CL_COUNT("clGetPlatformInfo", times);
    CL_COUNT("clGetDeviceIDs", 2 * times);
    CL_COUNT("clGetDeviceInfo", times);
}

int main(int argc, char **argv)
{
    int (*look[8])(int);
    CHECK(argc > 1 && argc <= 9);
    for (int i = 1; i < argc; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
            fprintf(stderr, "loaders: %s\n", dlerror());
        CHECK(plugin);
        look[i - 1] = dlsym(plugin, "look");
        CHECK(look[i - 1]);
        use(look[i - 1], 1);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < argc; i++)
            use(look[i - 1], 2);
    expect_print();
    return 0;
}
