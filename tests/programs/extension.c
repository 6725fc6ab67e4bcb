/* Entry points that the API itself hands out, a known and an unknown name, by both
 * functions that do so; what they hand out is called.
 */
#include "cl_util.h"

static void *ask(cl_platform_id platform, const char *name)
{
    return CL(clGetExtensionFunctionAddressForPlatform(platform, name));
}

/* Command buffers (PoCL): made, finalized, run, all through handed-out pointers. */
static int run_command_buffer(struct dev *d)
{
    clCreateCommandBufferKHR_fn create = ask(d->platform, "clCreateCommandBufferKHR");
    clCommandFillBufferKHR_fn fill = ask(d->platform, "clCommandFillBufferKHR");
    clFinalizeCommandBufferKHR_fn finalize = ask(d->platform, "clFinalizeCommandBufferKHR");
    clEnqueueCommandBufferKHR_fn enqueue = ask(d->platform, "clEnqueueCommandBufferKHR");
    clReleaseCommandBufferKHR_fn release = ask(d->platform, "clReleaseCommandBufferKHR");
    if (!create || !fill || !finalize || !enqueue || !release)
        return 0;

    cl_command_queue queue =
        MAKE(clCreateCommandQueueWithProperties(d->context, d->device, NULL, &err));
    cl_mem buffer = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE, 1024, NULL, &err));
    cl_int err = -9999;
    cl_command_buffer_khr commands =
        CL_AS("clCreateCommandBufferKHR", create(1, &queue, NULL, &err));
    CHECK(err == CL_SUCCESS && commands);
    int value = 0x01020304, read[256] = {0};
    cl_sync_point_khr point = 0;
    CHECK(CL_AS("clCommandFillBufferKHR", fill(commands, NULL, buffer, &value, sizeof value, 0,
                                               1024, 0, NULL, &point, NULL)) == CL_SUCCESS);
    CHECK(CL_AS("clFinalizeCommandBufferKHR", finalize(commands)) == CL_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK(CL_AS("clEnqueueCommandBufferKHR",
                    enqueue(0, NULL, commands, 0, NULL, NULL)) == CL_SUCCESS);
        /* Without the simultaneous-use flag, it may not be enqueued while it runs. */
        OK(clFinish(queue));
    }
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 1024, read, 0, NULL, NULL));
    for (int i = 0; i < 256; i++)
        CHECK(read[i] == value);
    CHECK(CL_AS("clReleaseCommandBufferKHR", release(commands)) == CL_SUCCESS);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    return 1;
}

/* The vendor's own platform list: every ICD has this one. */
static int run_icd_platforms(struct dev *d, int through_old_function)
{
    void *f = through_old_function ? CL(clGetExtensionFunctionAddress("clIcdGetPlatformIDsKHR"))
                                   : ask(d->platform, "clIcdGetPlatformIDsKHR");
    if (!f)
        return 0;
    cl_uint n = 0;
    cl_int code = CL_AS("clIcdGetPlatformIDsKHR", ((clIcdGetPlatformIDsKHR_fn)f)(0, NULL, &n));
    CHECK(code == CL_SUCCESS && n >= 1);
    return 1;
}

int main(void)
{
    struct dev d = dev_open();
    printf("clIcdGetPlatformIDsKHR for the platform: %d\n", run_icd_platforms(&d, 0));
    printf("clIcdGetPlatformIDsKHR, old function: %d\n", run_icd_platforms(&d, 1));
    printf("command buffer: %d\n", run_command_buffer(&d));
    printf("unknown for the platform: %d\n", ask(d.platform, "clNobodyKnowsThisHTR") != NULL);
    printf("unknown, old function: %d\n",
           CL(clGetExtensionFunctionAddress("clNobodyKnowsThisHTR")) != NULL);
    /* A core function is no extension; what the answer is, is the platform's choice. */
    printf("core name for the platform: %d\n", ask(d.platform, "clFinish") != NULL);
    dev_close(&d);
    expect_print();
    return 0;
}
