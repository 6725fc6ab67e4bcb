/* What the program here uses of oneDNN 3, whose descriptors are objects. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct dnnl_engine *dnnl_engine_t;
typedef struct dnnl_stream *dnnl_stream_t;
typedef struct dnnl_memory_desc *dnnl_memory_desc_t;
typedef struct dnnl_memory *dnnl_memory_t;
typedef struct dnnl_primitive_desc *dnnl_primitive_desc_t;
typedef struct dnnl_primitive *dnnl_primitive_t;
typedef int64_t dnnl_dims_t[12];
typedef struct { int arg; dnnl_memory_t memory; } dnnl_exec_arg_t;

enum { CPU = 1, F32 = 3, AB = 3, SUCCESS = 0, INVALID = 2 };

int dnnl_engine_create(dnnl_engine_t *engine, int kind, size_t index);
int dnnl_engine_destroy(dnnl_engine_t engine);
int dnnl_stream_create(dnnl_stream_t *stream, dnnl_engine_t engine, unsigned int flags);
int dnnl_stream_wait(dnnl_stream_t stream);
int dnnl_stream_destroy(dnnl_stream_t stream);
int dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *desc, int ndims, const dnnl_dims_t dims, int type, int tag);
int dnnl_memory_desc_destroy(dnnl_memory_desc_t desc);
int dnnl_memory_create(dnnl_memory_t *memory, dnnl_memory_desc_t desc, dnnl_engine_t engine, void *handle);
int dnnl_memory_destroy(dnnl_memory_t memory);
int dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *desc, dnnl_engine_t engine, dnnl_memory_desc_t src,
                                      dnnl_memory_desc_t weights, dnnl_memory_desc_t bias, dnnl_memory_desc_t dst, void *attr);
int dnnl_primitive_desc_destroy(dnnl_primitive_desc_t desc);
int dnnl_primitive_create(dnnl_primitive_t *primitive, dnnl_primitive_desc_t desc);
int dnnl_primitive_execute(dnnl_primitive_t primitive, dnnl_stream_t stream, int n, const dnnl_exec_arg_t *args);
int dnnl_primitive_destroy(dnnl_primitive_t primitive);
