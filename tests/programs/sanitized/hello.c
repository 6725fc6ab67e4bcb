/* Runs nothing of OpenCL, but makes what a sanitizer's runtime intercepts, from a
 * constructor on, and asks the dynamic loader for functions of the API. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int asked;

__attribute__((constructor)) static void early(void)
{
    /* Nothing here is linked to OpenCL, so there is nothing to be found. */
    asked = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;
    asked += dlsym(RTLD_DEFAULT, "no_such_function") != NULL;
    asked += dlsym(RTLD_NEXT, "malloc") == NULL;
}

static void *work(void *text)
{
    return strdup(text);
}

int main(void)
{
    pthread_t thread;
    void *copy;
    if (pthread_create(&thread, NULL, work, "hello") != 0 || pthread_join(thread, &copy) != 0)
        return 1;
    printf("%s %d\n", (char *)copy, asked);
    free(copy);
    return 3;
}
