/* The cost of calls that make a command (Table 3 of the CLUST article).
 *
 *   async_loop [-n loop=1000] [-r rounds=10] [-p pause in ms=20]
 *
 *   read_blocking.BYTES   a blocking read, the article's case
 *   read_finish.BYTES     a read and clFinish
 *   kernel_finish         an empty kernel and clFinish
 *   kernel_batch          100 kernels and one clFinish; per kernel
 *   kernel_enqueue        only the enqueueing of those 100; per kernel
 */
#include "bench.h"
#include "cl_util.h"

enum { BATCH = 100, LARGEST = 400000 };

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;
static unsigned char *host;

static void read_loop(long n, size_t bytes, cl_bool blocking)
{
    for (long i = 0; i < n; i++) {
        clEnqueueReadBuffer(queue, buffer, blocking, 0, bytes, host, 0, NULL, NULL);
        if (!blocking)
            clFinish(queue);
    }
}

static void launch(void)
{
    size_t one = 1;
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
}

static void kernel_loop(long n)
{
    for (long i = 0; i < n; i++) {
        launch();
        clFinish(queue);
    }
}

static void batches(const struct options *o)
{
    double whole[MAX_ROUNDS], only[MAX_ROUNDS];
    for (int r = 0; r < o->rounds; r++) {
        kernel_loop(10);
        uint64_t enqueued = 0, start = ticks();
        for (long n = 0; n < o->most; n += BATCH) {
            uint64_t t = ticks();
            for (int i = 0; i < BATCH; i++)
                launch();
            enqueued += ticks() - t;
            clFinish(queue);
        }
        double kernels = (o->most + BATCH - 1) / BATCH * BATCH;
        whole[r] = (ticks() - start) * ns_per_tick / kernels;
        only[r] = enqueued * ns_per_tick / kernels;
        pause_between(o);
    }
    print_rounds("kernel_batch", whole, o->rounds);
    print_rounds("kernel_enqueue", only, o->rounds);
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){10, 20, 1000});
    calibrate();
    struct dev d = dev_open();
    cl_program program = build(&d, "__kernel void nothing(__global int *v) {}\n", NULL);
    queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    kernel = MAKE(clCreateKernel(program, "nothing", &err));
    buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, LARGEST, NULL, &err));
    CHECK((host = malloc(LARGEST)));
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    memset(host, 1, LARGEST);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, LARGEST, host, 0, NULL, NULL));
    kernel_loop(10);

    for (size_t bytes = 4; bytes <= LARGEST; bytes *= 10) {
        char key[64];
        snprintf(key, sizeof key, "read_blocking.%zu", bytes);
        ROUNDS(&o, key, o.most, read_loop(10, bytes, CL_TRUE), read_loop(o.most, bytes, CL_TRUE));
        snprintf(key, sizeof key, "read_finish.%zu", bytes);
        ROUNDS(&o, key, o.most, read_loop(10, bytes, CL_FALSE), read_loop(o.most, bytes, CL_FALSE));
    }
    ROUNDS(&o, "kernel_finish", o.most, kernel_loop(10), kernel_loop(o.most));
    batches(&o);

    free(host);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    dev_close(&d);
    return 0;
}
