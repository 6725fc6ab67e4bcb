/* A product by oneDNN 3. It is linked to the fake library. */
#include "../hip/counted.h"
#include "dnnl3.h"

#include <errno.h>
#include <stdlib.h>

static void ok(int status, int line) {
    if (status) {
        printf("line %d: status %d\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)

int main(void) {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_desc_t desc[3], none;
    dnnl_memory_t memory[3];
    dnnl_primitive_desc_t product;
    dnnl_primitive_t primitive;
    dnnl_dims_t dims[3] = {{64, 32}, {32, 16}, {64, 16}};
    OK(dnnl_engine_create, &engine, CPU, 0);
    OK(dnnl_stream_create, &stream, engine, 1);
    for (int i = 0; i < 3; i++) {
        OK(dnnl_memory_desc_create_with_tag, &desc[i], 2, dims[i], F32, AB);
        OK(dnnl_memory_create, &memory[i], desc[i], engine, NULL);
    }
    OK(dnnl_matmul_primitive_desc_create, &product, engine, desc[0], desc[1], NULL, desc[2], NULL);
    OK(dnnl_primitive_create, &primitive, product);
    dnnl_exec_arg_t args[] = {{1, memory[0]}, {33, memory[1]}, {17, memory[2]}};
    OK(dnnl_primitive_execute, primitive, stream, 3, args);
    OK(dnnl_stream_wait, stream);
    errno = 42;
    int refused = CALL(dnnl_memory_desc_create_with_tag, &none, 99, dims[0], F32, AB);
    printf("refused %d, errno %d\n", refused, errno);
    for (int i = 0; i < 3; i++) {
        OK(dnnl_memory_destroy, memory[i]);
        OK(dnnl_memory_desc_destroy, desc[i]);
    }
    OK(dnnl_primitive_destroy, primitive);
    OK(dnnl_primitive_desc_destroy, product);
    OK(dnnl_stream_destroy, stream);
    OK(dnnl_engine_destroy, engine);
    counted();
    return 0;
}
