/* Image commands, 2D and 3D: write, read, copy, fill, to and from buffers, map; on
 * every device that has images. Kernels with images are in kernels.c.
 */
#include "cl_util.h"

enum { W = 32, H = 16, D = 4 };
static const cl_image_format rgba = {CL_RGBA, CL_UNSIGNED_INT8};

struct shape {
    const char *name;
    cl_mem_object_type type;
    size_t region[3];
};

static cl_mem make_image(cl_context context, const struct shape *s)
{
    cl_image_desc desc = {.image_type = s->type, .image_width = W, .image_height = H};
    desc.image_depth = s->type == CL_MEM_OBJECT_IMAGE3D ? D : 0;
    return MAKE(clCreateImage(context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &err));
}

static void expect_pixels(const unsigned char *bytes, size_t n, const unsigned char *pixel)
{
    for (size_t i = 0; i < n; i++)
        CHECK(memcmp(bytes + 4 * i, pixel, 4) == 0);
}

static void commands(cl_context context, cl_command_queue q, const struct shape *s)
{
    static unsigned char in[W * H * D * 4], out[W * H * D * 4];
    const size_t origin[3] = {0, 0, 0}, pixels = s->region[0] * s->region[1] * s->region[2];
    const cl_uint color[4] = {9, 8, 7, 6};
    const unsigned char filled[4] = {9, 8, 7, 6}, written[4] = {1, 1, 1, 1};
    cl_mem a = make_image(context, s), b = make_image(context, s);
    cl_mem buffer = MAKE(clCreateBuffer(context, CL_MEM_READ_WRITE, pixels * 4, NULL, &err));
    cl_event e[5];

    memset(in, 1, sizeof in);
    OK(clEnqueueWriteImage(q, a, CL_FALSE, origin, s->region, 0, 0, in, 0, NULL, &e[0]));
    OK(clEnqueueCopyImage(q, a, b, origin, origin, s->region, 1, &e[0], &e[1]));
    OK(clEnqueueCopyImageToBuffer(q, b, buffer, origin, s->region, 0, 1, &e[1], &e[2]));
    OK(clEnqueueReadBuffer(q, buffer, CL_TRUE, 0, pixels * 4, out, 1, &e[2], NULL));
    expect_pixels(out, pixels, written);

    OK(clEnqueueFillImage(q, a, color, origin, s->region, 0, NULL, &e[3]));
    OK(clEnqueueReadImage(q, a, CL_TRUE, origin, s->region, 0, 0, out, 1, &e[3], NULL));
    expect_pixels(out, pixels, filled);
    OK(clEnqueueCopyBufferToImage(q, buffer, a, 0, origin, s->region, 0, NULL, &e[4]));

    size_t row = 0, slice = 0;
    unsigned char *p = MAKE(clEnqueueMapImage(q, a, CL_TRUE, CL_MAP_READ, origin, s->region, &row,
                                              &slice, 1, &e[4], NULL, &err));
    for (size_t z = 0; z < s->region[2]; z++)
        for (size_t y = 0; y < s->region[1]; y++)
            expect_pixels(p + z * slice + y * row, s->region[0], written);
    OK(clEnqueueUnmapMemObject(q, a, p, 0, NULL, NULL));
    OK(clFinish(q));

    for (int i = 0; i < 5; i++)
        OK(clReleaseEvent(e[i]));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseMemObject(buffer));
    printf("  %s: row pitch %zu\n", s->name, row);
}

static void on_device(cl_device_id device)
{
    static const struct shape shapes[] = {{"2D", CL_MEM_OBJECT_IMAGE2D, {W, H, 1}},
                                          {"3D", CL_MEM_OBJECT_IMAGE3D, {W, H, D}}};
    char name[256];
    cl_bool images = CL_FALSE;
    OK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, NULL));
    printf("%s: images %d\n", name, images);
    if (!images)
        return;
    cl_context context = MAKE(clCreateContext(NULL, 1, &device, NULL, NULL, &err));
    cl_command_queue q = MAKE(clCreateCommandQueue(context, device, 0, &err));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        commands(context, q, &shapes[i]);
    OK(clReleaseCommandQueue(q));
    OK(clReleaseContext(context));
}

int main(void)
{
    cl_platform_id platforms[16];
    cl_device_id devices[16];
    cl_uint np = 0, nd = 0;
    OK(clGetPlatformIDs(16, platforms, &np));
    for (cl_uint i = 0; i < np && i < 16; i++) {
        OK(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, devices, &nd));
        for (cl_uint k = 0; k < nd && k < 16; k++)
            on_device(devices[k]);
    }
    expect_print();
    return 0;
}
