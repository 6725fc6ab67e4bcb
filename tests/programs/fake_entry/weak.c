/* A program that does without CUDA when it is not there. */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((weak)) int cuInit(unsigned);
__attribute__((weak)) int cudaMalloc(void **, size_t);

static void tell(const char *what, int there)
{
    printf("%s: %s\n", what, there ? "there" : "not there");
}

int main(void)
{
    tell("cuInit", cuInit != NULL);
    tell("cudaMalloc", cudaMalloc != NULL);
    tell("in the global scope", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    tell("an error message", dlerror() != NULL);
    tell("behind the program", dlsym(RTLD_NEXT, "cudaMalloc") != NULL);
    tell("another one", dlsym(RTLD_DEFAULT, "dlopen") != NULL);
    return 0;
}
