/* A program that starts an interpreter late, and goes on when it has ended one. */

#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

static cl_platform_id places[1 << 16];

/* LIBPYTHON SOURCE: runs Python code, with calls before and after. Their numbers are above those of the code. */
int main(int count, char **arguments) {
    if (count < 3) return 2;
    clGetPlatformIDs(60001, places, NULL);
    void *python = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!python) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    clGetPlatformIDs(60002, places, NULL);
    void (*begin)(int) = (void (*)(int))symbol(python, "Py_InitializeEx");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))symbol(python, "PyRun_SimpleStringFlags");
    int (*end)(void) = (int (*)(void))symbol(python, "Py_FinalizeEx");
    begin(0);
    clGetPlatformIDs(60003, places, NULL);
    if (run(arguments[2], NULL)) return 1;
    clGetPlatformIDs(60004, places, NULL);
    if (end()) return 1;
    clGetPlatformIDs(60005, places, NULL);
    return 0;
}
