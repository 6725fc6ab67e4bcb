/* An OpenCL loader as those since 2025 are, in a program of its own: it knows layers by clInitLayerWithProperties alone, ends
 * them by clDeinitLayer, and closes their libraries, while a thread of the program lives that has called through them.
 */
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef cl_int (*Initialize)(cl_uint, const cl_icd_dispatch *, cl_uint *, const cl_icd_dispatch **, const uint64_t *);
typedef cl_int (*End)(void);

static unsigned asked;
static const cl_icd_dispatch *table;
static sem_t called, closed;

/* What lies below the layer. */
static cl_int CL_API_CALL platforms(cl_uint room, cl_platform_id *ids, cl_uint *count)
{
    (void)room, (void)ids;
    asked++;
    if (count)
        *count = 0;
    return -1001;
}

static void *thread(void *unused)
{
    (void)unused;
    cl_uint count = 1;
    if (table->clGetPlatformIDs(0, NULL, &count) != -1001 || count != 0)
        exit(3);
    sem_post(&called);
    sem_wait(&closed);
    return NULL;
}

int main(void)
{
    static cl_icd_dispatch below;
    below.clGetPlatformIDs = platforms;
    table = &below;
    const char *path = getenv("OPENCL_LAYERS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    End end = NULL;
    if (library) {
        Initialize initialize = (Initialize)(uintptr_t)dlsym(library, "clInitLayerWithProperties");
        end = (End)(uintptr_t)dlsym(library, "clDeinitLayer");
        const uint64_t properties[] = {0};
        cl_uint entries = 0;
        if (!initialize || !end || initialize(sizeof below / sizeof(void *), &below, &entries, &table, properties) != 0)
            return 2;
        if (entries < sizeof below / sizeof(void *))
            return 4;
    }
    pthread_t other;
    if (sem_init(&called, 0, 0) != 0 || sem_init(&closed, 0, 0) != 0 || pthread_create(&other, NULL, thread, NULL) != 0)
        return 5;
    sem_wait(&called);
    cl_uint count = 1;
    table->clGetPlatformIDs(0, NULL, &count);
    if (end && (end() != 0 || dlclose(library) != 0))
        return 6;
    sem_post(&closed);
    pthread_join(other, NULL);
    printf("asked %u, there are %u\n", asked, count);
    return 0;
}
