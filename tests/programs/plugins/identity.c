/* A layer of OpenCL (OPENCL_LAYERS) that gives devices the UUID 000102…0f, which processors have none of.
 */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_layer.h>
#include <string.h>

static cl_icd_dispatch layer, below;

static cl_int CL_API_CALL info(cl_device_id device, cl_device_info name, size_t size, void *value, size_t *size_ret)
{
    unsigned char uuid[CL_UUID_SIZE_KHR];
    if (name != CL_DEVICE_UUID_KHR)
        return below.clGetDeviceInfo(device, name, size, value, size_ret);
    for (unsigned i = 0; i < sizeof uuid; i++)
        uuid[i] = i;
    if (value && size < sizeof uuid)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, uuid, sizeof uuid);
    if (size_ret)
        *size_ret = sizeof uuid;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
    cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION || (value && size < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, &version, sizeof version);
    if (size_ret)
        *size_ret = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
                                            const cl_icd_dispatch **dispatch)
{
    size_t bytes = entries * sizeof(void *);
    memcpy(&below, target, bytes < sizeof below ? bytes : sizeof below);
    layer = below;
    layer.clGetDeviceInfo = info;
    *entries_ret = sizeof layer / sizeof(void *);
    *dispatch = &layer;
    return CL_SUCCESS;
}
