/* A program that closes the API's library when it does not need it, and opens it again.
 *
 *   times=N calls=K
 */
#define NO_LINKED_OPENCL
#include "torture.h"
#include <dlfcn.h>
#include <pthread.h>

typedef cl_int (*get_platforms)(cl_uint, cl_platform_id *, cl_uint *);

static void *one_call(void *function)
{
    cl_uint count;
    thread_count();
    CALL(((get_platforms)function)(0, NULL, &count));
    return NULL;
}

int main(int argc, char **argv)
{
    long times = number(argc, argv, "times", 20), calls = number(argc, argv, "calls", 10);
    board_make();
    for (long i = 0; i < times; i++) {
        pthread_t t;
        void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
        CHECK(library != NULL);
        void *function = dlsym(library, "clGetPlatformIDs");
        CHECK(function != NULL);
        for (long k = 0; k < calls; k++)
            one_call(function);
        CHECK(pthread_create(&t, NULL, one_call, function) == 0 && pthread_join(t, NULL) == 0);
        CHECK(dlclose(library) == 0);
    }
    board_print();
    return 7;
}
