/* A program that does without OpenCL when it is not there: it refers to the functions
 * weakly, asks for them by name, and is linked to no loader.
 *
 *   weak [load]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__attribute__((weak)) int clGetPlatformIDs(unsigned, void *, unsigned *);
__attribute__((weak)) int clFinish(void *);

static void report(const char *what, int there)
{
    printf("%s: %s\n", what, there ? "there" : "not there");
}

int main(int argc, char **argv)
{
    report("clGetPlatformIDs", clGetPlatformIDs != NULL);
    report("clFinish", clFinish != NULL);
    report("in the global scope", dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL);
    report("an error message", dlerror() != NULL);
    report("in the program", dlsym(dlopen(NULL, RTLD_NOW), "clGetPlatformIDs") != NULL);
    report("behind the program", dlsym(RTLD_NEXT, "clGetPlatformIDs") != NULL);
    if (argc > 1 && strcmp(argv[1], "load") == 0) {
        report("a loader", dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL);
        int (*platforms)(unsigned, void *, unsigned *) = dlsym(RTLD_DEFAULT, "clGetPlatformIDs");
        report("in the global scope", platforms != NULL);
        unsigned count = 0;
        printf("%d", platforms(0, NULL, &count));
        printf(" and %u platforms\nEXPECT clGetPlatformIDs=1\n", count);
    }
    return 0;
}
