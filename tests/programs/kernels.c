/* Programs and kernels: all kinds of arguments, options, a build that fails, compile
 * and link, a round trip through binaries, kernels of a whole program, clones, and
 * handles that are used again for another kernel.
 *
 * What a platform doesn't offer is printed as a code and left out.
 */
#include "cl_util.h"

static const char *all_arguments =
    "typedef struct { int a; float b; char c[8]; } record;\n"
    "__kernel void everything(__global int *out, __constant int *table, __local int *scratch,\n"
    "                         char c, short s, int i, long l, float f, double d, int4 v,\n"
    "                         record r, float16 w) {\n"
    "  int x = get_local_id(0);\n"
    "  scratch[x] = table[x] + SCALE;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  out[get_global_id(0)] = scratch[x] + c + s + i + (int)l + (int)f + (int)d + v.x + v.w\n"
    "                          + r.a + (int)r.b + r.c[7] + (int)w.sf;\n"
    "}\n";

static const char *with_image =
    "__kernel void sample(read_only image2d_t in, sampler_t how, __global uint *out) {\n"
    "  int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "  out[at.y * get_global_size(0) + at.x] = read_imageui(in, how, at).x;\n"
    "}\n";

static const char *three_kernels =
    "__kernel void first(__global int *v) { v[0] = 1; }\n"
    "__kernel void second_with_a_name_that_is_longer_than_most_buffers_that_one_would_think_"
    "of_when_reserving_space_for_names(__global int *v) { v[0] = 2; }\n"
    "__kernel void third(__global int *v, int n) { v[0] = n; }\n";

struct record {
    cl_int a;
    cl_float b;
    cl_char c[8];
};

static int run(struct dev *d, cl_command_queue q, cl_kernel k, cl_mem v)
{
    int result = -1;
    size_t one = 1;
    (void)d;
    OK(clSetKernelArg(k, 0, sizeof v, &v));
    OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(q, v, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL));
    return result;
}

static void arguments(struct dev *d, cl_command_queue q)
{
    cl_program p = build(d, all_arguments, "-DSCALE=100 -cl-mad-enable -w");
    cl_kernel k = MAKE(clCreateKernel(p, "everything", &err));
    int zero[8] = {0}, table[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out[8];
    cl_mem o = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zero,
                                   zero, &err));
    cl_mem t = MAKE(clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, sizeof table,
                                   table, &err));
    cl_char c = 2;
    cl_short s = 3;
    cl_int i = 4;
    cl_long l = 5;
    cl_float f = 6;
    cl_double e = 7;
    cl_int4 v = {{8, 0, 0, 9}};
    struct record r = {10, 11, {0, 0, 0, 0, 0, 0, 0, 12}};
    cl_float16 w = {{0}};
    w.s[15] = 13;
    OK(clSetKernelArg(k, 0, sizeof o, &o));
    OK(clSetKernelArg(k, 1, sizeof t, &t));
    OK(clSetKernelArg(k, 2, 8 * sizeof(int), NULL));
    OK(clSetKernelArg(k, 3, sizeof c, &c));
    OK(clSetKernelArg(k, 4, sizeof s, &s));
    OK(clSetKernelArg(k, 5, sizeof i, &i));
    OK(clSetKernelArg(k, 6, sizeof l, &l));
    OK(clSetKernelArg(k, 7, sizeof f, &f));
    OK(clSetKernelArg(k, 8, sizeof e, &e));
    OK(clSetKernelArg(k, 9, sizeof v, &v));
    OK(clSetKernelArg(k, 10, sizeof r, &r));
    OK(clSetKernelArg(k, 11, sizeof w, &w));
    size_t size[3] = {8, 1, 1}, group[3] = {8, 1, 1}, offset[3] = {0, 0, 0};
    OK(clEnqueueNDRangeKernel(q, k, 3, offset, size, group, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(q, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
    for (int n = 0; n < 8; n++)
        CHECK(out[n] == 101 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13);
    CHECK(CL(clSetKernelArg(k, 12, sizeof i, &i)) == CL_INVALID_ARG_INDEX);
    CHECK(CL(clSetKernelArg(k, 5, 1, &i)) == CL_INVALID_ARG_SIZE);
    OK(clReleaseMemObject(o));
    OK(clReleaseMemObject(t));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(p));
}

static void images(struct dev *d, cl_command_queue q)
{
    cl_bool has = CL_FALSE;
    OK(clGetDeviceInfo(d->device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL));
    if (!has)
        return;
    enum { SIDE = 4 };
    cl_image_format format = {CL_R, CL_UNSIGNED_INT32};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
    cl_uint pixels[SIDE * SIDE], out[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = i * i;
    cl_program p = build(d, with_image, NULL);
    cl_kernel k = MAKE(clCreateKernel(p, "sample", &err));
    cl_mem in = MAKE(clCreateImage(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &desc,
                                   pixels, &err));
    cl_mem o = MAKE(clCreateBuffer(d->context, CL_MEM_WRITE_ONLY, sizeof out, NULL, &err));
    cl_sampler how =
        MAKE(clCreateSampler(d->context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &err));
    OK(clSetKernelArg(k, 0, sizeof in, &in));
    OK(clSetKernelArg(k, 1, sizeof how, &how));
    OK(clSetKernelArg(k, 2, sizeof o, &o));
    size_t size[2] = {SIDE, SIDE};
    OK(clEnqueueNDRangeKernel(q, k, 2, NULL, size, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(q, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
    CHECK(memcmp(out, pixels, sizeof out) == 0);
    OK(clReleaseSampler(how));
    OK(clReleaseMemObject(in));
    OK(clReleaseMemObject(o));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(p));
    printf("image and sampler arguments\n");
}

static void failing_build(struct dev *d)
{
    const char *pieces[3] = {"__kernel void broken(__global int *v) {", " v[0] = no_such_name; ", "}XXXX"};
    size_t lengths[3] = {0, strlen(pieces[1]), 1};
    cl_program p = MAKE(clCreateProgramWithSource(d->context, 3, pieces, lengths, &err));
    cl_int code = CL(clBuildProgram(p, 1, &d->device, "-DX=1", NULL, NULL));
    CHECK(code == CL_BUILD_PROGRAM_FAILURE);
    size_t size = 0;
    OK(clGetProgramBuildInfo(p, d->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size));
    char *log = calloc(1, size + 1);
    CHECK(log && size > 1);
    OK(clGetProgramBuildInfo(p, d->device, CL_PROGRAM_BUILD_LOG, size, log, NULL));
    printf("log names it: %d\n", strstr(log, "no_such_name") != NULL);
    free(log);
    cl_int none = 99;
    cl_kernel k = CL(clCreateKernel(p, "broken", &none));
    CHECK(!k && none < 0);
    printf("kernel of a failed build: %d\n", none);
    OK(clReleaseProgram(p));
}

static void compile_and_link(struct dev *d, cl_command_queue q, cl_mem v)
{
    const char *header = "#define ANSWER 42\n", *name = "answer.h";
    const char *source = "#include \"answer.h\"\n__kernel void linked(__global int *v) { v[0] = ANSWER; }\n";
    cl_program h = MAKE(clCreateProgramWithSource(d->context, 1, &header, NULL, &err));
    cl_program s = MAKE(clCreateProgramWithSource(d->context, 1, &source, NULL, &err));
    OK(clCompileProgram(s, 1, &d->device, NULL, 1, &h, &name, NULL, NULL));
    cl_program p = MAKE(clLinkProgram(d->context, 1, &d->device, NULL, 1, &s, NULL, NULL, &err));
    cl_kernel k = MAKE(clCreateKernel(p, "linked", &err));
    printf("compiled and linked: %d\n", run(d, q, k, v));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(p));
    OK(clReleaseProgram(s));
    OK(clReleaseProgram(h));
}

static void binaries(struct dev *d, cl_command_queue q, cl_mem v)
{
    cl_program p = build(d, three_kernels, NULL);
    size_t size = 0;
    OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    unsigned char *bytes = malloc(size);
    CHECK(size && bytes);
    OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL));
    cl_int status = 99;
    cl_program again = MAKE(clCreateProgramWithBinary(d->context, 1, &d->device, &size,
                                                      (const unsigned char **)&bytes, &status, &err));
    CHECK(status == CL_SUCCESS);
    OK(clBuildProgram(again, 1, &d->device, NULL, NULL, NULL));
    cl_kernel k = MAKE(clCreateKernel(again, "first", &err));
    printf("from a binary: %d\n", run(d, q, k, v));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(again));
    OK(clReleaseProgram(p));
    free(bytes);
}

static void whole_program(struct dev *d, cl_command_queue q, cl_mem v)
{
    cl_program p = build(d, three_kernels, NULL);
    cl_kernel k[3];
    cl_uint n = 0;
    OK(clCreateKernelsInProgram(p, 0, NULL, &n));
    CHECK(n == 3);
    OK(clCreateKernelsInProgram(p, 3, k, NULL));
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        char name[256];
        OK(clGetKernelInfo(k[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL));
        int seven = 7;
        if (strcmp(name, "third") == 0)
            OK(clSetKernelArg(k[i], 1, sizeof seven, &seven));
        sum += run(d, q, k[i], v);
    }
    printf("kernels of one program: %d\n", sum);
    if (!is_oclgrind(d->platform)) {
        cl_int code = 99;
        cl_kernel clone = CL(clCloneKernel(k[0], &code));
        if (code == CL_SUCCESS) {
            printf("clone: %d\n", run(d, q, clone, v) > 0);
            OK(clReleaseKernel(clone));
        } else {
            printf("clone: not offered (%d)\n", code);
        }
    }
    for (int i = 0; i < 3; i++)
        OK(clReleaseKernel(k[i]));
    OK(clReleaseProgram(p));
}

/* A name kept by handle goes stale when the allocator gives the address away again. */
static void reused_handles(struct dev *d, cl_command_queue q, cl_mem v)
{
    cl_program p = build(d, three_kernels, NULL);
    void *seen = NULL;
    int reused = 0;
    for (int i = 0; i < 20; i++) {
        cl_kernel k = MAKE(clCreateKernel(p, i % 2 ? "third" : "first", &err));
        int n = 50 + i;
        if (i % 2)
            OK(clSetKernelArg(k, 1, sizeof n, &n));
        CHECK(run(d, q, k, v) == (i % 2 ? n : 1));
        reused += k == seen;
        seen = k;
        OK(clReleaseKernel(k));
    }
    /* stderr: the allocator's choice is no part of the deterministic output. */
    fprintf(stderr, "handles used again: %d of 19\n", reused);
    OK(clReleaseProgram(p));
}

int main(void)
{
    struct dev d = dev_open();
    cl_command_queue q = MAKE(clCreateCommandQueue(d.context, d.device, CL_QUEUE_PROFILING_ENABLE, &err));
    cl_mem v = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 64, NULL, &err));
    arguments(&d, q);
    images(&d, q);
    failing_build(&d);
    compile_and_link(&d, q, v);
    binaries(&d, q, v);
    whole_program(&d, q, v);
    reused_handles(&d, q, v);
    OK(clReleaseMemObject(v));
    OK(clReleaseCommandQueue(q));
    dev_close(&d);
    expect_print();
    return 0;
}
