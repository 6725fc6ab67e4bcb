/* An ICD whose compiler takes PTX for source and gives it back as binary, as far as programs have to do with that. Its devices
 * run each command at once, on the host: a kernel adds 1 to each number of the buffer that is its first argument; one that
 * records takes a chunk of the buffer that is its last. Objects of a context hold a reference of it, which its count shows.
 *
 *   FAKE_OPENCL_LOG            file with a line for each kernel that ran
 *   FAKE_OPENCL_REFUSES        programs made of binaries with this in them can't be built
 *   FAKE_OPENCL_REFUSES_OPTIONS  nor with options, where this is set
 *   FAKE_OPENCL_REFUSES_LAUNCH kernels with this in their name can't be launched
 *   FAKE_OPENCL_BINARY         what binaries are instead
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_icd.h>
#include <stdio.h>
#include <time.h>

#include "../inside_pool.h"

enum { ARGS = 16, DEVICES = 2 };

struct object {
    cl_icd_dispatch *dispatch;
    int refs;
    struct object *of; /* holds a reference of it */
    cl_device_id device;
    char *text, *options, *name; /* of programs and kernels */
    int built, from_binary, args, set[ARGS];
    struct object *arg[ARGS];
    unsigned char *bytes; /* of buffers */
    size_t size;
    cl_ulong times[4]; /* of events */
    cl_command_queue_properties properties;
};
typedef struct object *O;

static cl_icd_dispatch table;
static struct object platform = {&table, 1}, devices[DEVICES] = {{&table, 1}, {&table, 1}};

static O make(O of, cl_int *error)
{
    O o = calloc(1, sizeof *o);
    *o = (struct object){.dispatch = &table, .refs = 1, .of = of};
    if (of)
        of->refs++;
    if (error)
        *error = CL_SUCCESS;
    return o;
}

static cl_int retain(O o)
{
    return o ? (o->refs++, CL_SUCCESS) : CL_INVALID_VALUE;
}

static cl_int release(O o)
{
    if (!o)
        return CL_INVALID_VALUE;
    if (--o->refs == 0) {
        O of = o->of;
        free(o->text), free(o->options), free(o->name), free(o->bytes);
        memset(o, 0x55, sizeof *o); /* not freed: no handle comes again */
        if (of)
            release(of);
    }
    return CL_SUCCESS;
}

static cl_int give(const void *what, size_t need, size_t size, void *value, size_t *ret)
{
    if (value && size < need)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, what, need);
    if (ret)
        *ret = need;
    return CL_SUCCESS;
}
#define GIVE(v) give(&(v), sizeof(v), size, value, ret)
#define TEXT(t) give((t), strlen(t) + 1, size, value, ret)
#define INFO size_t size, void *value, size_t *ret

static cl_int platform_ids(cl_uint n, cl_platform_id *list, cl_uint *count)
{
    if (list && n)
        list[0] = (cl_platform_id)&platform;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

cl_int clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *list, cl_uint *count)
{
    return platform_ids(n, list, count);
}

cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info name, INFO)
{
    (void)p;
    const char *text = name == CL_PLATFORM_EXTENSIONS       ? "cl_khr_icd"
                       : name == CL_PLATFORM_ICD_SUFFIX_KHR ? "FAKE"
                       : name == CL_PLATFORM_VERSION        ? "OpenCL 3.0 fake"
                       : name == CL_PLATFORM_PROFILE        ? "FULL_PROFILE"
                                                            : "Fake platform";
    return TEXT(text);
}

void *clGetExtensionFunctionAddress(const char *name)
{
    return !strcmp(name, "clIcdGetPlatformIDsKHR") ? (void *)clIcdGetPlatformIDsKHR
           : !strcmp(name, "clGetPlatformInfo")    ? (void *)clGetPlatformInfo
                                                   : NULL;
}

static cl_int device_ids(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *list, cl_uint *count)
{
    (void)p, (void)type;
    for (cl_uint i = 0; list && i < n && i < DEVICES; i++)
        list[i] = (cl_device_id)&devices[i];
    if (count)
        *count = DEVICES;
    return CL_SUCCESS;
}

static cl_int device_info(cl_device_id d, cl_device_info name, INFO)
{
    (void)d;
    cl_uint number = name == 0x4000 ? 9 : 0; /* CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, …_MINOR_NV: 0x4001 */
    if (name == 0x4000 || name == 0x4001)
        return GIVE(number);
    if (name == CL_DEVICE_PLATFORM) {
        O at = &platform;
        return GIVE(at);
    }
    return name == CL_DEVICE_NAME      ? TEXT("Fake device")
           : name == CL_DEVICE_VERSION ? TEXT("OpenCL 1.2 fake")
                                       : CL_INVALID_VALUE;
}

static cl_context create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *list,
                                 void (*notify)(const char *, const void *, size_t, void *), void *user, cl_int *error)
{
    (void)properties, (void)n, (void)notify, (void)user;
    O o = make(NULL, error);
    o->device = list[0];
    return (cl_context)o;
}

static cl_int context_info(cl_context c, cl_context_info name, INFO)
{
    O o = (O)c;
    return name == CL_CONTEXT_REFERENCE_COUNT ? GIVE(o->refs)
           : name == CL_CONTEXT_DEVICES       ? GIVE(o->device)
                                              : CL_INVALID_VALUE;
}

static cl_command_queue create_queue(cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *error)
{
    O o = make((O)c, error);
    o->device = d, o->properties = properties;
    return (cl_command_queue)o;
}

static cl_int queue_info(cl_command_queue q, cl_command_queue_info name, INFO)
{
    O o = (O)q;
    return name == CL_QUEUE_CONTEXT      ? GIVE(o->of)
           : name == CL_QUEUE_DEVICE     ? GIVE(o->device)
           : name == CL_QUEUE_PROPERTIES ? GIVE(o->properties)
                                         : CL_INVALID_VALUE;
}

static cl_mem create_buffer(cl_context c, cl_mem_flags flags, size_t size, void *host, cl_int *error)
{
    (void)flags, (void)host;
    O o = make((O)c, error);
    o->bytes = calloc(1, size), o->size = size;
    return (cl_mem)o;
}

static cl_program with_source(cl_context c, cl_uint n, const char **texts, const size_t *lengths, cl_int *error)
{
    (void)n, (void)lengths;
    O o = make((O)c, error);
    o->device = ((O)c)->device, o->text = strdup(texts[0]);
    return (cl_program)o;
}

static cl_program with_binary(cl_context c, cl_uint n, const cl_device_id *list, const size_t *lengths,
                              const unsigned char **binaries, cl_int *status, cl_int *error)
{
    (void)n;
    O o = make((O)c, error);
    o->device = list[0], o->text = strndup((const char *)binaries[0], lengths[0]), o->from_binary = 1;
    if (status)
        *status = CL_SUCCESS;
    return (cl_program)o;
}

static cl_int build(cl_program p, cl_uint n, const cl_device_id *list, const char *options,
                    void (*notify)(cl_program, void *), void *user)
{
    (void)n, (void)list;
    O o = (O)p;
    const char *refuses = getenv("FAKE_OPENCL_REFUSES");
    free(o->options);
    o->options = strdup(options ? options : "");
    o->built = !strstr(o->text, "an error") && !(o->from_binary && refuses && strstr(o->text, refuses)) &&
               !(o->from_binary && *o->options && getenv("FAKE_OPENCL_REFUSES_OPTIONS"));
    if (notify)
        notify(p, user);
    return o->built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

static cl_program link_programs(cl_context c, cl_uint n, const cl_device_id *list, const char *options, cl_uint inputs,
                                const cl_program *from, void (*notify)(cl_program, void *), void *user, cl_int *error)
{
    (void)inputs;
    const char *text = ((O)from[0])->text;
    cl_program p = with_source(c, 1, &text, NULL, error);
    *error = build(p, n, list, options, notify, user);
    return p;
}

static cl_int program_info(cl_program p, cl_program_info name, INFO)
{
    O o = (O)p;
    const char *other = getenv("FAKE_OPENCL_BINARY"), *binary = other ? other : o->text;
    size_t length = strlen(binary) + 1;
    cl_uint one = 1;
    if (name == CL_PROGRAM_BINARIES && value && *(char **)value)
        memcpy(*(char **)value, binary, length);
    return name == CL_PROGRAM_CONTEXT           ? GIVE(o->of)
           : name == CL_PROGRAM_REFERENCE_COUNT ? GIVE(o->refs)
           : name == CL_PROGRAM_DEVICES         ? GIVE(o->device)
           : name == CL_PROGRAM_NUM_DEVICES     ? GIVE(one)
           : name == CL_PROGRAM_BINARY_SIZES    ? GIVE(length)
           : name == CL_PROGRAM_BINARIES        ? (ret ? (*ret = 8, CL_SUCCESS) : CL_SUCCESS)
                                                : CL_INVALID_VALUE;
}

static cl_int build_info(cl_program p, cl_device_id d, cl_program_build_info name, INFO)
{
    (void)d;
    O o = (O)p;
    cl_build_status status = o->built ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
    return name == CL_PROGRAM_BUILD_STATUS    ? GIVE(status)
           : name == CL_PROGRAM_BUILD_OPTIONS ? TEXT(o->options ? o->options : "")
           : name == CL_PROGRAM_BUILD_LOG     ? TEXT("a log")
                                              : CL_INVALID_VALUE;
}

/* How many parameters the kernel of this name has; -1: there is no such kernel. */
static int parameters(const char *text, const char *name)
{
    char entry[300];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *at = strstr(text, entry), *end = at ? strchr(at, '{') : NULL;
    int count = at ? 0 : -1;
    while (at && (at = strstr(at, ".param")) && at < end)
        at++, count++;
    return count;
}

static cl_kernel create_kernel(cl_program p, const char *name, cl_int *error)
{
    O of = (O)p;
    int count = of->built ? parameters(of->text, name) : -1;
    if (count < 0) {
        if (error)
            *error = of->built ? CL_INVALID_KERNEL_NAME : CL_INVALID_PROGRAM_EXECUTABLE;
        return NULL;
    }
    O o = make(of, error);
    o->name = strdup(name), o->args = count, o->device = of->device;
    return (cl_kernel)o;
}

static cl_int kernels_in(cl_program p, cl_uint room, cl_kernel *list, cl_uint *count)
{
    O o = (O)p;
    cl_uint found = 0;
    for (const char *at = o->text; (at = strstr(at, ".entry ")); found++) {
        char name[256];
        sscanf(at += 7, "%255[^(]", name);
        if (list && found < room)
            list[found] = create_kernel(p, name, NULL);
    }
    if (count)
        *count = found;
    return CL_SUCCESS;
}

static cl_kernel clone(cl_kernel k, cl_int *error)
{
    O from = (O)k, o = make(from->of, error);
    o->name = strdup(from->name), o->args = from->args, o->device = from->device;
    memcpy(o->set, from->set, sizeof o->set), memcpy(o->arg, from->arg, sizeof o->arg);
    return (cl_kernel)o;
}

static cl_int set_arg(cl_kernel k, cl_uint i, size_t size, const void *value)
{
    O o = (O)k;
    if (i >= (cl_uint)o->args || i >= ARGS)
        return CL_INVALID_ARG_INDEX;
    o->set[i] = 1, o->arg[i] = size == 8 && value ? *(O *)value : NULL;
    return CL_SUCCESS;
}

static cl_int exec_info(cl_kernel k, cl_kernel_exec_info name, size_t size, const void *value)
{
    (void)k, (void)name, (void)size, (void)value;
    return CL_SUCCESS;
}

static cl_int kernel_info(cl_kernel k, cl_kernel_info name, INFO)
{
    O o = (O)k;
    return name == CL_KERNEL_FUNCTION_NAME     ? TEXT(o->name)
           : name == CL_KERNEL_NUM_ARGS        ? GIVE(o->args)
           : name == CL_KERNEL_REFERENCE_COUNT ? GIVE(o->refs)
           : name == CL_KERNEL_PROGRAM         ? GIVE(o->of)
           : name == CL_KERNEL_CONTEXT         ? GIVE(o->of->of)
                                               : CL_INVALID_VALUE;
}

static cl_ulong now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static cl_int done(O queue, cl_ulong begun, cl_event *event)
{
    if (event) {
        O o = make(queue, NULL);
        o->times[0] = o->times[1] = o->times[2] = begun, o->times[3] = now();
        *event = (cl_event)o;
    }
    return CL_SUCCESS;
}

static cl_int event_info(cl_event e, cl_event_info name, INFO)
{
    O o = (O)e;
    cl_int complete = CL_COMPLETE;
    return name == CL_EVENT_COMMAND_EXECUTION_STATUS ? GIVE(complete)
           : name == CL_EVENT_REFERENCE_COUNT        ? GIVE(o->refs)
           : name == CL_EVENT_COMMAND_QUEUE          ? GIVE(o->of)
                                                     : CL_INVALID_VALUE;
}

static cl_int profiling(cl_event e, cl_profiling_info name, INFO)
{
    O o = (O)e;
    return name - CL_PROFILING_COMMAND_QUEUED < 4 ? GIVE(o->times[name - CL_PROFILING_COMMAND_QUEUED]) : CL_INVALID_VALUE;
}

static cl_int read_buffer(cl_command_queue q, cl_mem m, cl_bool blocks, size_t offset, size_t size, void *to, cl_uint n,
                          const cl_event *list, cl_event *event)
{
    (void)blocks, (void)n, (void)list;
    cl_ulong begun = now();
    memcpy(to, ((O)m)->bytes + offset, size);
    return done((O)q, begun, event);
}

static cl_int write_buffer(cl_command_queue q, cl_mem m, cl_bool blocks, size_t offset, size_t size, const void *from,
                           cl_uint n, const cl_event *list, cl_event *event)
{
    (void)blocks, (void)n, (void)list;
    cl_ulong begun = now();
    memcpy(((O)m)->bytes + offset, from, size);
    return done((O)q, begun, event);
}

static cl_int fill_buffer(cl_command_queue q, cl_mem m, const void *pattern, size_t length, size_t offset, size_t size,
                          cl_uint n, const cl_event *list, cl_event *event)
{
    (void)length, (void)n, (void)list;
    cl_ulong begun = now();
    memset(((O)m)->bytes + offset, *(const char *)pattern, size);
    return done((O)q, begun, event);
}

static cl_int launch(cl_command_queue q, cl_kernel k, cl_uint dimensions, const size_t *offset, const size_t *global,
                     const size_t *local, cl_uint n, const cl_event *list, cl_event *event)
{
    (void)dimensions, (void)offset, (void)local, (void)n, (void)list;
    O o = (O)k;
    const char *refuses = getenv("FAKE_OPENCL_REFUSES_LAUNCH"), *log = getenv("FAKE_OPENCL_LOG");
    cl_ulong begun = now();
    if (((O)q)->device != o->device)
        return CL_INVALID_PROGRAM_EXECUTABLE;
    if (refuses && strstr(o->name, refuses))
        return CL_OUT_OF_RESOURCES;
    for (int i = 0; i < o->args; i++)
        if (!o->set[i])
            return CL_INVALID_KERNEL_ARGS;
    int records = is_twins_name(o->name);
    O buffer = o->args - records > 0 ? o->arg[0] : NULL, pool = records ? o->arg[o->args - 1] : NULL;
    for (size_t i = 0; buffer && i < global[0]; i++)
        ((cl_uint *)buffer->bytes)[i]++;
    if (pool)
        record_in_pool((uint64_t)pool->bytes, number_in(o->of->text, o->name), 0);
    FILE *to = log ? fopen(log, "a") : NULL;
    if (to)
        fprintf(to, "%s\n", o->name), fclose(to);
    return done((O)q, begun, event);
}

static cl_int nothing(cl_command_queue q)
{
    (void)q;
    return CL_SUCCESS;
}

static cl_int waited(cl_uint n, const cl_event *list)
{
    (void)n, (void)list;
    return CL_SUCCESS;
}

static cl_icd_dispatch table = {
    .clGetPlatformIDs = platform_ids,
    .clGetPlatformInfo = clGetPlatformInfo,
    .clGetDeviceIDs = device_ids,
    .clGetDeviceInfo = device_info,
    .clCreateContext = create_context,
    .clRetainContext = (cl_api_clRetainContext)retain,
    .clReleaseContext = (cl_api_clReleaseContext)release,
    .clGetContextInfo = context_info,
    .clCreateCommandQueue = create_queue,
    .clRetainCommandQueue = (cl_api_clRetainCommandQueue)retain,
    .clReleaseCommandQueue = (cl_api_clReleaseCommandQueue)release,
    .clGetCommandQueueInfo = queue_info,
    .clCreateBuffer = create_buffer,
    .clRetainMemObject = (cl_api_clRetainMemObject)retain,
    .clReleaseMemObject = (cl_api_clReleaseMemObject)release,
    .clCreateProgramWithSource = with_source,
    .clCreateProgramWithBinary = with_binary,
    .clRetainProgram = (cl_api_clRetainProgram)retain,
    .clReleaseProgram = (cl_api_clReleaseProgram)release,
    .clBuildProgram = build,
    .clLinkProgram = link_programs,
    .clGetProgramInfo = program_info,
    .clGetProgramBuildInfo = build_info,
    .clCreateKernel = create_kernel,
    .clCreateKernelsInProgram = kernels_in,
    .clRetainKernel = (cl_api_clRetainKernel)retain,
    .clReleaseKernel = (cl_api_clReleaseKernel)release,
    .clSetKernelArg = set_arg,
    .clSetKernelExecInfo = exec_info,
    .clCloneKernel = clone,
    .clGetKernelInfo = kernel_info,
    .clWaitForEvents = waited,
    .clGetEventInfo = event_info,
    .clRetainEvent = (cl_api_clRetainEvent)retain,
    .clReleaseEvent = (cl_api_clReleaseEvent)release,
    .clGetEventProfilingInfo = profiling,
    .clFlush = nothing,
    .clFinish = nothing,
    .clEnqueueReadBuffer = read_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueFillBuffer = fill_buffer,
    .clEnqueueNDRangeKernel = launch,
};
