/* Opens HIP's libraries late, by the names given, as Python's modules do, and asks each for its functions. */
#include "hip.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "late: %s\n", dlerror());
            return 2;
        }
        hipError_t (*init)(unsigned int) = (hipError_t(*)(unsigned int))dlsym(library, "hipInit");
        hipError_t (*count)(int *) = (hipError_t(*)(int *))dlsym(library, "hipGetDeviceCount");
        int n = -1;
        hipError_t first = init(0), second = count(&n);
        printf("init %d, count %d of %d\n", first, second, n);
    }
    return 0;
}
