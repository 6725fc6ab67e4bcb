/* Stands for libdnnl.so.3: objects that are made and given back. What is not here, the library has from the model. */
#include "dnnl3.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define MADE(place) (*(void **)(place) = malloc(16), SUCCESS)
#define GONE(object) (free(object), SUCCESS)

EXPORT int dnnl_engine_create(dnnl_engine_t *engine, int kind, size_t index) {
    (void)kind;
    return index ? INVALID : MADE(engine);
}
EXPORT int dnnl_engine_destroy(dnnl_engine_t engine) { return GONE(engine); }
EXPORT int dnnl_stream_create(dnnl_stream_t *stream, dnnl_engine_t engine, unsigned int flags) {
    (void)engine, (void)flags;
    return MADE(stream);
}
EXPORT int dnnl_stream_destroy(dnnl_stream_t stream) { return GONE(stream); }
EXPORT int dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *desc, int ndims, const dnnl_dims_t dims, int type, int tag) {
    (void)dims, (void)type, (void)tag;
    return ndims > 12 ? INVALID : MADE(desc);
}
EXPORT int dnnl_memory_desc_destroy(dnnl_memory_desc_t desc) { return GONE(desc); }
EXPORT int dnnl_memory_create(dnnl_memory_t *memory, dnnl_memory_desc_t desc, dnnl_engine_t engine, void *handle) {
    (void)desc, (void)engine, (void)handle;
    return MADE(memory);
}
EXPORT int dnnl_memory_destroy(dnnl_memory_t memory) { return GONE(memory); }
EXPORT int dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *desc, dnnl_engine_t engine, dnnl_memory_desc_t src,
                                             dnnl_memory_desc_t weights, dnnl_memory_desc_t bias, dnnl_memory_desc_t dst, void *attr) {
    (void)engine, (void)src, (void)weights, (void)bias, (void)dst, (void)attr;
    return MADE(desc);
}
EXPORT int dnnl_primitive_desc_destroy(dnnl_primitive_desc_t desc) { return GONE(desc); }
EXPORT int dnnl_primitive_create(dnnl_primitive_t *primitive, dnnl_primitive_desc_t desc) {
    (void)desc;
    return MADE(primitive);
}
EXPORT int dnnl_primitive_destroy(dnnl_primitive_t primitive) { return GONE(primitive); }
