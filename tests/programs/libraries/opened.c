/* Opens libraries late, by the names given behind the beginning of their functions' names, as Python's modules do, and asks
 * each for its version. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "%sGetProperty", argv[1]);
    for (int i = 2; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "opened: %s\n", dlerror());
            return 2;
        }
        int (*property)(int, int *) = (int (*)(int, int *))dlsym(library, name);
        int major = -1, minor = -1, status = property(0, &major) | property(1, &minor);
        printf("%d.%d, %d\n", major, minor, status);
    }
    return 0;
}
