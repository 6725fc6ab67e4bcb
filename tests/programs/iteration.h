/* The iteration of the CLUST article, shared by linked.c and the benchmark's
 * iteration.c: a small image computed from 13 arguments and read back.
 */
#ifndef HETRACE_TEST_ITERATION_H
#define HETRACE_TEST_ITERATION_H

#include "cl_util.h"

static const char *image_source =
    "__kernel void image(__global int *out, int width, int height, int a, int b, int c,\n"
    "                    int d, int e, int f, int g, int h, int i, int j) {\n"
    "  int x = get_global_id(0), y = get_global_id(1);\n"
    "  if (x < width && y < height)\n"
    "    out[y * width + x] = a*x + b*y + (c ^ x) + (d ^ y) + e + f*x*y + g - h + (i & x) + (j | y);\n"
    "}\n";

enum { SCALARS = 10 };

static int pixel(const int *v, int x, int y)
{
    return v[0] * x + v[1] * y + (v[2] ^ x) + (v[3] ^ y) + v[4] + v[5] * x * y + v[6] - v[7] +
           (v[8] & x) + (v[9] | y);
}

struct image {
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem out;
    int width, height;
    int *pixels;
};

static void scalars_of(int iteration, int *v)
{
    for (int i = 0; i < SCALARS; i++)
        v[i] = iteration % 17 + i;
}

static struct image image_open(struct dev *d, int width, int height)
{
    struct image m = {.width = width, .height = height};
    size_t bytes = sizeof(int) * width * height;
    m.queue = MAKE(clCreateCommandQueue(d->context, d->device, 0, &err));
    m.program = build(d, image_source, "");
    m.kernel = MAKE(clCreateKernel(m.program, "image", &err));
    m.out = MAKE(clCreateBuffer(d->context, CL_MEM_WRITE_ONLY, bytes, NULL, &err));
    CHECK((m.pixels = malloc(bytes)));
    return m;
}

static void image_close(struct image *m)
{
    free(m->pixels);
    OK(clReleaseMemObject(m->out));
    OK(clReleaseKernel(m->kernel));
    OK(clReleaseProgram(m->program));
    OK(clReleaseCommandQueue(m->queue));
}

static void set_arguments(struct image *m, int iteration)
{
    int v[SCALARS];
    scalars_of(iteration, v);
    OK(clSetKernelArg(m->kernel, 0, sizeof m->out, &m->out));
    OK(clSetKernelArg(m->kernel, 1, sizeof(int), &m->width));
    OK(clSetKernelArg(m->kernel, 2, sizeof(int), &m->height));
    for (int i = 0; i < SCALARS; i++)
        OK(clSetKernelArg(m->kernel, 3 + i, sizeof(int), &v[i]));
}

static void launch(struct image *m)
{
    size_t size[2] = {m->width, m->height};
    OK(clEnqueueNDRangeKernel(m->queue, m->kernel, 2, NULL, size, NULL, 0, NULL, NULL));
}

static void read_back(struct image *m)
{
    size_t bytes = sizeof(int) * m->width * m->height;
    OK(clEnqueueReadBuffer(m->queue, m->out, CL_TRUE, 0, bytes, m->pixels, 0, NULL, NULL));
}

static void iterate(struct image *m, int iteration)
{
    set_arguments(m, iteration);
    launch(m);
    read_back(m);
    OK(clFinish(m->queue));
}

static void verify(const struct image *m, int iteration)
{
    int v[SCALARS];
    scalars_of(iteration, v);
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++)
            CHECK(m->pixels[y * m->width + x] == pixel(v, x, y));
}

#endif
