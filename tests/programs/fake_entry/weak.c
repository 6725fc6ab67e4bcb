/* A program that does without CUDA when it is not there. */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((weak)) int cuInit(unsigned);
__attribute__((weak)) int cudaMalloc(void **, size_t);

static void report(const char *what, int there)
{
    printf("%s: %s\n", what, there ? "there" : "not there");
}

int main(void)
{
    report("cuInit", cuInit != NULL);
    report("cudaMalloc", cudaMalloc != NULL);
    report("in the global scope", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    report("an error message", dlerror() != NULL);
    report("behind the program", dlsym(RTLD_NEXT, "cudaMalloc") != NULL);
    report("another one", dlsym(RTLD_DEFAULT, "dlopen") != NULL);
    return 0;
}
