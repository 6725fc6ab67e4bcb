/* The cost of calls that return at once (Table 2 of the CLUST article).
 *
 *   sync_loop [-n largest loop=1000000] [-r rounds=10] [-p pause in ms=20]
 *
 * For each loop size 1, 10, ... and each function: NAME.SIZE.mean and so on.
 * `floor` is measured here as well: two time stamps and the bytes of an entry and an
 * exit record, stored into a 1 MiB ring whose pages are there already. No tracer that
 * records both times of a call can cost less.
 */
#include "bench.h"
#include "cl_util.h"

enum { RING = 1 << 20 };

/* 72 bytes: what four arguments and a result take. */
struct entry {
    uint64_t time, id, args[4];
};
struct leave {
    uint64_t time, id, result;
};

static unsigned char *ring;

static void two_records(long n)
{
    size_t at = 0;
    for (long i = 0; i < n; i++) {
        struct entry *e = (struct entry *)(ring + at);
        e->time = __rdtsc();
        e->id = 1;
        e->args[0] = i;
        e->args[1] = i + 1;
        e->args[2] = i + 2;
        e->args[3] = i + 3;
        __asm__ volatile("" ::: "memory"); /* the traced call would be here */
        struct leave *l = (struct leave *)(ring + at + sizeof *e);
        l->time = __rdtsc();
        l->id = 2;
        l->result = 0;
        at += sizeof *e + sizeof *l;
        if (at + sizeof *e + sizeof *l > RING)
            at = 0;
        __asm__ volatile("" ::: "memory");
    }
}

static void two_stamps(long n)
{
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        sum += __rdtsc();
        __asm__ volatile("" : "+r"(sum));
        sum += __rdtsc();
        __asm__ volatile("" : "+r"(sum));
    }
}

static void get_platforms(long n)
{
    cl_uint count;
    for (long i = 0; i < n; i++)
        clGetPlatformIDs(0, NULL, &count);
}

static cl_kernel kernel;
static cl_mem buffer;
static cl_event event;

static void set_argument(long n)
{
    for (long i = 0; i < n; i++)
        clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
}

static void event_info(long n)
{
    cl_int status;
    for (long i = 0; i < n; i++)
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
}

static void kernel_info(long n)
{
    cl_uint count;
    for (long i = 0; i < n; i++)
        clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
}

static void measure(const struct options *o, const char *name, void (*loop)(long))
{
    for (long n = 1; n <= o->most; n *= 10) {
        char key[128];
        snprintf(key, sizeof key, "%s.%ld", name, n);
        ROUNDS(o, key, n, loop(100), loop(n));
    }
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){10, 20, 1000000});
    calibrate();
    ring = malloc(RING);
    CHECK(ring);
    memset(ring, 1, RING);

    struct dev d = dev_open();
    cl_program program = build(&d, "__kernel void one(__global int *v) { v[0] = 1; }\n", NULL);
    kernel = MAKE(clCreateKernel(program, "one", &err));
    buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 64, NULL, &err));
    event = MAKE(clCreateUserEvent(d.context, &err));

    measure(&o, "two_rdtsc", two_stamps);
    measure(&o, "floor", two_records);
    measure(&o, "clGetPlatformIDs", get_platforms);
    measure(&o, "clSetKernelArg", set_argument);
    measure(&o, "clGetEventInfo", event_info);
    measure(&o, "clGetKernelInfo", kernel_info);

    OK(clSetUserEventStatus(event, CL_COMPLETE));
    OK(clReleaseEvent(event));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    dev_close(&d);
    return 0;
}
