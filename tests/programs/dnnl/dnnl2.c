/* A product and a convolution by oneDNN 2 on the processor, with its own headers. It counts its own calls and prints what
 * they came to. */
#include "../hip/counted.h"

#include <errno.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>

static void ok(dnnl_status_t status, int line) {
    if (status) {
        printf("line %d: status %d\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static dnnl_memory_desc_t described(int ndims, const dnnl_dims_t dims, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t desc;
    OK(dnnl_memory_desc_init_by_tag, &desc, ndims, dims, dnnl_f32, tag);
    return desc;
}

static dnnl_memory_t filled(const dnnl_memory_desc_t *desc, float value) {
    dnnl_memory_t memory;
    float *data;
    OK(dnnl_memory_create, &memory, desc, engine, DNNL_MEMORY_ALLOCATE);
    OK(dnnl_memory_map_data, memory, (void **)&data);
    size_t bytes = CALL(dnnl_memory_desc_get_size, desc);
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] = value;
    OK(dnnl_memory_unmap_data, memory, data);
    return memory;
}

static float first(dnnl_memory_t memory) {
    float *data;
    OK(dnnl_memory_get_data_handle, memory, (void **)&data);
    return data[0];
}

static void run(const_dnnl_op_desc_t operation, dnnl_exec_arg_t *args, int n) {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    OK(dnnl_primitive_desc_create, &desc, operation, NULL, engine, NULL);
    OK(dnnl_primitive_create, &primitive, desc);
    OK(dnnl_primitive_desc_destroy, desc);
    OK(dnnl_primitive_execute, primitive, stream, n, args);
    OK(dnnl_stream_wait, stream);
    OK(dnnl_primitive_destroy, primitive);
}

static void product(void) {
    dnnl_memory_desc_t a = described(2, (dnnl_dims_t){64, 32}, dnnl_ab);
    dnnl_memory_desc_t b = described(2, (dnnl_dims_t){32, 16}, dnnl_ab);
    dnnl_memory_desc_t c = described(2, (dnnl_dims_t){64, 16}, dnnl_ab);
    dnnl_memory_t memory[3] = {filled(&a, 2), filled(&b, 3), filled(&c, 0)};
    dnnl_matmul_desc_t matmul;
    OK(dnnl_matmul_desc_init, &matmul, &a, &b, NULL, &c);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, memory[0]}, {DNNL_ARG_WEIGHTS, memory[1]}, {DNNL_ARG_DST, memory[2]}};
    run(&matmul, args, 3);
    printf("product %g\n", first(memory[2]));
    for (int i = 0; i < 3; i++)
        OK(dnnl_memory_destroy, memory[i]);
}

static void convolution(int leave) {
    dnnl_memory_desc_t src = described(4, (dnnl_dims_t){2, 3, 16, 16}, dnnl_nchw);
    dnnl_memory_desc_t weights = described(4, (dnnl_dims_t){8, 3, 3, 3}, dnnl_oihw);
    dnnl_memory_desc_t dst = described(4, (dnnl_dims_t){2, 8, 8, 8}, dnnl_nchw);
    dnnl_memory_t memory[3] = {filled(&src, 1), filled(&weights, 1), filled(&dst, 0)};
    dnnl_dims_t strides = {2, 2}, left = {1, 1}, right = {0, 0};
    dnnl_convolution_desc_t conv;
    OK(dnnl_convolution_forward_desc_init, &conv, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights, NULL, &dst,
       strides, left, right);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, memory[0]}, {DNNL_ARG_WEIGHTS, memory[1]}, {DNNL_ARG_DST, memory[2]}};
    run(&conv, args, 3);
    printf("convolution %g\n", first(memory[2]));
    for (int i = leave; i < 3; i++)
        OK(dnnl_memory_destroy, memory[i]);
}

int main(int argc, char **argv) {
    int leave = argc > 1 && strcmp(argv[1], "leave") == 0;
    const dnnl_version_t *version = CALL(dnnl_version);
    OK(dnnl_engine_create, &engine, dnnl_cpu, 0);
    OK(dnnl_stream_create, &stream, engine, dnnl_stream_default_flags);
    product();
    convolution(leave);
    float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[4] = {0};
    OK(dnnl_sgemm, 'N', 'N', 2, 2, 2, 1.5f, a, 2, b, 2, 0, c, 2);
    errno = 42;
    dnnl_memory_desc_t none;
    int refused = CALL(dnnl_memory_desc_init_by_tag, &none, 99, (dnnl_dims_t){1}, dnnl_f32, dnnl_ab);
    int unknown = CALL(dnnl_engine_create, &(dnnl_engine_t){NULL}, dnnl_cpu, 77);
    printf("version %d, gemm %g, refused %d %d, errno %d\n", version->major, c[3], refused, unknown, errno);
    OK(dnnl_stream_destroy, stream);
    OK(dnnl_engine_destroy, engine);
    counted();
    return 0;
}
