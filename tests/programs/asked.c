/* Two loaders in one process, both asked by dlsym.
 *
 *   asked OTHER.so
 *
 * Calls the functions of the machine's loader and of another one by turns.
 */
#define NO_LINKED_OPENCL
#include "cl_util.h"
#include <dlfcn.h>

struct loader {
    __typeof__(&clGetPlatformIDs) platforms;
    __typeof__(&clGetPlatformInfo) info;
};

static struct loader look(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    struct loader l = { dlsym(library, "clGetPlatformIDs"), dlsym(library, "clGetPlatformInfo") };
    CHECK(l.platforms && l.info);
    return l;
}

static void use(struct loader *l)
{
    cl_platform_id platform;
    char name[256];
    CHECK(CL_AS("clGetPlatformIDs", l->platforms(1, &platform, NULL)) == CL_SUCCESS);
    CHECK(CL_AS("clGetPlatformInfo", l->info(platform, CL_PLATFORM_NAME, sizeof name, name, NULL)) == CL_SUCCESS);
    printf("%s\n", name);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    struct loader first = look("libOpenCL.so.1");
    use(&first);
    struct loader second = look(argv[1]);
    for (int round = 0; round < 4; round++) {
        use(&second);
        use(&first);
    }
    expect_print();
    return 0;
}
