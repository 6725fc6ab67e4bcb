/* Launches whose buffers before and after are known, for what is stored of them; and
 * builds: two equal programs, one that fails with a long log, one with a callback.
 *
 *     buffers [order | outoforder | gated | kinds | builds]
 *
 * The bytes are such that each content is different: before launch n of `scale` the
 * output holds what launch n - 1 left there.
 */
#include "cl_util.h"

enum { N = 1024, LAUNCHES = 4 };

static const char *source =
    "__kernel void scale(__global const int *restrict in, __global int *out, int factor) {\n"
    "  int i = get_global_id(0);\n"
    "  out[i] = in[i] * factor + out[i];\n"
    "}\n"
    "__kernel void other(__global int *v, ulong n) { v[get_global_id(0)] += (int)n; }\n";

static int in[N], out[N];

static long checksum(const int *v)
{
    long sum = 0;
    for (int i = 0; i < N; i++)
        sum = sum * 31 % 1000003 + v[i];
    return sum;
}

static cl_mem buffer(struct dev *d, cl_mem_flags flags, int *from)
{
    return MAKE(clCreateBuffer(d->context, flags | CL_MEM_COPY_HOST_PTR, sizeof in, from, &err));
}

static void set(cl_kernel k, cl_mem a, cl_mem b, int factor)
{
    OK(clSetKernelArg(k, 0, sizeof a, &a));
    OK(clSetKernelArg(k, 1, sizeof b, &b));
    OK(clSetKernelArg(k, 2, sizeof factor, &factor));
}

static void launches(struct dev *d, cl_program p, int outoforder, int gated)
{
    cl_command_queue_properties how = outoforder ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
    cl_command_queue q = MAKE(clCreateCommandQueue(d->context, d->device, how, &err));
    cl_kernel k = MAKE(clCreateKernel(p, "scale", &err)), o = MAKE(clCreateKernel(p, "other", &err));
    cl_mem a = buffer(d, CL_MEM_READ_ONLY, in), b = buffer(d, CL_MEM_READ_WRITE, out);
    cl_event gate = NULL, last = NULL;
    if (gated) {
        gate = MAKE(clCreateUserEvent(d->context, &err));
        last = gate;
    }
    size_t n = N;
    for (int i = 0; i < LAUNCHES; i++) {
        cl_event done;
        set(k, a, b, i + 2);
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, last ? 1 : 0, last ? &last : NULL, &done));
        if (last && last != gate)
            OK(clReleaseEvent(last));
        last = done;
    }

    cl_ulong three = 3;
    OK(clSetKernelArg(o, 0, sizeof b, &b));
    OK(clSetKernelArg(o, 1, sizeof three, &three));
    OK(clEnqueueNDRangeKernel(q, o, 1, NULL, &n, NULL, 1, &last, NULL));
    OK(clReleaseEvent(last));
    if (gated) {
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clReleaseEvent(gate));
    }
    OK(clFinish(q));
    int result[N];
    OK(clEnqueueReadBuffer(q, b, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL));
    printf("checksum %ld\n", checksum(result));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseKernel(k));
    OK(clReleaseKernel(o));
    OK(clReleaseCommandQueue(q));
}

/* Part of a buffer, a buffer that the host may not read, shared memory, no buffer at all. */
static void kinds(struct dev *d, cl_program p)
{
    cl_command_queue q = MAKE(clCreateCommandQueue(d->context, d->device, 0, &err));
    cl_kernel k = MAKE(clCreateKernel(p, "scale", &err));
    cl_mem whole = buffer(d, CL_MEM_READ_WRITE, in);
    cl_buffer_region region = {0, sizeof in / 2};
    cl_mem half = MAKE(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
    cl_mem hidden = buffer(d, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, out);
    size_t n = N / 2;
    set(k, half, hidden, 5);
    OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL));
    OK(clFinish(q));
    cl_device_svm_capabilities can = 0;
    if (CL(clGetDeviceInfo(d->device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL)) == CL_SUCCESS &&
        can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER && !is_oclgrind(d->platform)) {
        int *shared = CL(clSVMAlloc(d->context, CL_MEM_READ_WRITE, sizeof in, 0));
        CHECK(shared);
        OK(clSetKernelArgSVMPointer(k, 1, shared));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL));
        OK(clFinish(q));
        CL_AS("clSVMFree", clSVMFree(d->context, shared));
    }
    /* Retained, so that the first release is not the last. */
    OK(clRetainMemObject(whole));
    OK(clReleaseMemObject(whole));
    set(k, whole, half, 0);
    OK(clEnqueueTask(q, k, 0, NULL, NULL));
    OK(clFinish(q));
    OK(clReleaseMemObject(half));
    OK(clReleaseMemObject(whole));
    OK(clReleaseMemObject(hidden));
    OK(clReleaseKernel(k));
    OK(clReleaseCommandQueue(q));
}

static int called;

static void CL_CALLBACK built(cl_program p, void *user)
{
    (void)p;
    *(int *)user += 1;
    __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void builds(struct dev *d)
{
    /* The same text, once whole and once in pieces with lengths. */
    size_t cut = 17, lengths[2] = {cut, 0};
    const char *pieces[2] = {source, source + cut};
    cl_program one = MAKE(clCreateProgramWithSource(d->context, 1, &source, NULL, &err));
    cl_program two = MAKE(clCreateProgramWithSource(d->context, 2, pieces, lengths, &err));
    int user = 0;
    OK(clBuildProgram(one, 1, &d->device, "-DBY_CALLBACK", built, &user));
    for (int i = 0; i < 5000 && !__atomic_load_n(&called, __ATOMIC_ACQUIRE); i++)
        sleep_ms(1);
    printf("called back %d times\n", user);
    OK(clReleaseProgram(two));

    /* Twenty errors about names of 400 letters: longer than a record. */
    static char text[20000];
    int at = sprintf(text, "__kernel void broken(__global int *v) {\n");
    for (int i = 0; i < 20; i++) {
        at += sprintf(text + at, "  v[%d] = no_such_name_%d_", i, i);
        memset(text + at, 'x', 400);
        at += 400;
        at += sprintf(text + at, ";\n");
    }
    sprintf(text + at, "}\n");
    const char *broken = text;
    cl_program bad = MAKE(clCreateProgramWithSource(d->context, 1, &broken, NULL, &err));
    CHECK(CL(clBuildProgram(bad, 0, NULL, "-DBROKEN", NULL, NULL)) == CL_BUILD_PROGRAM_FAILURE);
    printf("a build failed\n");
    OK(clReleaseProgram(bad));
    OK(clReleaseProgram(one));
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "order";
    for (int i = 0; i < N; i++) {
        in[i] = i;
        out[i] = 7 * i;
    }
    struct dev d = dev_open();
    if (strcmp(mode, "builds") == 0) {
        builds(&d);
    } else {
        cl_program p = build(&d, source, "-cl-kernel-arg-info");
        if (strcmp(mode, "kinds") == 0)
            kinds(&d, p);
        else
            launches(&d, p, strcmp(mode, "outoforder") == 0, strcmp(mode, "gated") == 0);
        OK(clReleaseProgram(p));
    }
    dev_close(&d);
    expect_print();
    return 0;
}
