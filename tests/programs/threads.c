/* Many threads that start, call and end: three waves, so that what belonged to ended
 * threads can be used again.
 *
 *   threads [threads=100] [calls=20]
 *
 * Waves 1 and 2: all alive at the same time. Wave 3: one after the other, some of
 * them detached and some without any call.
 */
#include "cl_util.h"
#include <pthread.h>

static pthread_barrier_t all_here;
static cl_device_id device;
static int calls;
static int detached_left;

/* Thread i makes its number of calls, of two kinds, between all others' calls. */
static void call_some(int i)
{
    for (int k = 0; k < calls + i % 7; k++) {
        cl_uint n = 0;
        OK(clGetPlatformIDs(0, NULL, &n));
        if (k % 4 == 0)
            OK(clGetDeviceInfo(device, CL_DEVICE_VENDOR_ID, sizeof n, &n, NULL));
    }
}

static void *together(void *index)
{
    pthread_barrier_wait(&all_here);
    call_some((int)(long)index);
    pthread_barrier_wait(&all_here);
    return NULL;
}

static void *alone(void *index)
{
    if ((long)index % 5 != 4)
        call_some((int)(long)index);
    return NULL;
}

static void *detached(void *index)
{
    call_some((int)(long)index);
    __atomic_fetch_sub(&detached_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void wave(int n)
{
    pthread_t *t = calloc(n, sizeof *t);
    CHECK(t && pthread_barrier_init(&all_here, NULL, n) == 0);
    for (long i = 0; i < n; i++)
        CHECK(pthread_create(&t[i], NULL, together, (void *)i) == 0);
    for (int i = 0; i < n; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    pthread_barrier_destroy(&all_here);
    free(t);
}

static void one_by_one(int n)
{
    pthread_attr_t apart;
    pthread_attr_init(&apart);
    pthread_attr_setdetachstate(&apart, PTHREAD_CREATE_DETACHED);
    for (long i = 0; i < n; i++) {
        pthread_t t;
        if (i % 10 == 9) {
            __atomic_fetch_add(&detached_left, 1, __ATOMIC_RELAXED);
            CHECK(pthread_create(&t, &apart, detached, (void *)i) == 0);
        } else {
            CHECK(pthread_create(&t, NULL, alone, (void *)i) == 0);
            CHECK(pthread_join(t, NULL) == 0);
        }
    }
    while (__atomic_load_n(&detached_left, __ATOMIC_ACQUIRE))
        sleep_ms(1);
    pthread_attr_destroy(&apart);
}

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 100);
    calls = arg_or(argc, argv, 2, 20);
    struct dev d = dev_open();
    device = d.device;
    wave(n);
    wave(n);
    one_by_one(n);
    dev_close(&d);
    printf("3 waves of %d threads\n", n);
    expect_print();
    return 0;
}
