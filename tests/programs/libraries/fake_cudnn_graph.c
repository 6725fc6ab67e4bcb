/* Stands for libcudnn_graph.so.MAJOR, the part that all others need: handles, and descriptors that keep their attributes. */
#include "cudnn.h"
#include "launch.h"

#include <stdlib.h>
#include <string.h>

struct cudnn_handle { cudaStream_t stream; };
enum { MOST = 8, BYTES = 64 };
struct backend { int kind, count, names[MOST]; int64_t counts[MOST]; char elements[MOST][BYTES]; };

EXPORT size_t cudnnGetVersion(void) { return MAJOR == 8 ? 8900 : MAJOR * 10000 + 100; }

EXPORT int cudnnGetProperty(int type, int *value)
{
    if (value)
        *value = type == 0 ? MAJOR : type == 1 ? 1 : 0;
    return 0;
}

EXPORT const char *cudnnGetErrorString(int status)
{
    switch (status) {
    case 0: return "CUDNN_STATUS_SUCCESS";
    case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case 2042: return "CUDNN_STATUS_BAD_PARAM_OF_A_LATER_VERSION";
    default: return "CUDNN_UNKNOWN_STATUS";
    }
}

EXPORT int cudnnCreate(cudnnHandle_t *handle)
{
    if (!handle)
        return BAD_PARAM;
    *handle = calloc(1, sizeof **handle);
    return 0;
}

EXPORT int cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return 0;
}

EXPORT int cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return BAD_PARAM;
    handle->stream = stream;
    return 0;
}

EXPORT int cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    if (!handle)
        return BAD_PARAM;
    *stream = handle->stream;
    return 0;
}

EXPORT int cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t *desc)
{
    struct backend *made = calloc(1, sizeof *made);
    if (!desc)
        return BAD_PARAM;
    made->kind = type;
    *desc = made;
    return 0;
}

EXPORT int cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    free(desc);
    return 0;
}

static size_t bytes_of(int type)
{
    return type == TYPE_BOOLEAN || type == TYPE_CHAR ? 1 : type == TYPE_FRACTION ? 16 : type == TYPE_DATA_TYPE || type == TYPE_FLOAT ? 4 : 8;
}

EXPORT int cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc, int name, int type, int64_t count, const void *elements)
{
    struct backend *set = desc;
    if (!set || set->count == MOST || count < 0 || count * bytes_of(type) > BYTES)
        return BAD_PARAM;
    set->names[set->count] = name;
    set->counts[set->count] = count;
    memcpy(set->elements[set->count++], elements, count * bytes_of(type));
    return 0;
}

EXPORT int cudnnBackendGetAttribute(cudnnBackendDescriptor_t desc, int name, int type, int64_t wanted, int64_t *count,
                                    void *elements)
{
    struct backend *asked = desc;
    for (int i = 0; asked && i < asked->count; i++) {
        if (asked->names[i] != name)
            continue;
        if (count)
            *count = asked->counts[i];
        if (elements)
            memcpy(elements, asked->elements[i], (wanted < asked->counts[i] ? wanted : asked->counts[i]) * bytes_of(type));
        return 0;
    }
    return NOT_SUPPORTED;
}

EXPORT int cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    return handle && plan && pack ? launch("fused", handle->stream) : BAD_PARAM;
}
