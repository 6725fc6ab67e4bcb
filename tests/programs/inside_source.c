/* Runs kernels of a source: inside_source FILE KERNELS ITEMS GROUP LAUNCHES HOW [OPTIONS]. They are k0, k1, …, with a buffer
 * of ITEMS numbers and the number of the launch. HOW: source, callback, link, again (in a second context, too), all
 * (clCreateKernelsInProgram). Prints what it sees of its objects, and what kernels left in the buffer.
 */
#include "cl_util.h"

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(2);
    char *text = calloc(1, 1 << 22);
    size_t got = fread(text, 1, (1 << 22) - 1, file);
    fclose(file);
    text[got] = 0;
    return text;
}

static void CL_CALLBACK built(cl_program program, void *data)
{
    (void)program;
    __atomic_store_n((int *)data, 1, __ATOMIC_RELEASE);
}

static cl_program build_as(cl_context context, cl_device_id device, const char *text, const char *how,
                        const char *options)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    if (!strcmp(how, "link")) {
        error |= clCompileProgram(program, 1, &device, options, 0, NULL, NULL, NULL, NULL);
        cl_program linked = clLinkProgram(context, 1, &device, "", 1, &program, NULL, NULL, &error);
        clReleaseProgram(program);
        program = linked;
    } else if (!strcmp(how, "callback")) {
        int done = 0;
        error |= clBuildProgram(program, 1, &device, options, built, &done);
        while (!error && !__atomic_load_n(&done, __ATOMIC_ACQUIRE))
            usleep(1000);
    } else {
        error |= clBuildProgram(program, 1, &device, options, NULL, NULL);
    }
    printf("built %d\n", error);
    if (error)
        exit(3);
    return program;
}

static void seen(cl_program program, cl_kernel kernel)
{
    cl_uint arguments = 0, references = 0, devices = 0;
    size_t kernels = 0, names = 0;
    char name[100] = "";
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof references, &references, NULL);
    clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, NULL);
    clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &names);
    clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof devices, &devices, NULL);
    printf("%s: %u arguments, %u references, %zu kernels, %zu bytes of names, %u devices\n", name, arguments,
           references, kernels, names, devices);
}

static void run(cl_device_id device, const char *text, int argc, char **argv)
{
    int kernels = atoi(argv[2]), launches = atoi(argv[5]);
    size_t items = (size_t)atoi(argv[3]), group = (size_t)atoi(argv[4]);
    cl_int error = 0;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    cl_program program = build_as(context, device, text, argv[6], argc > 7 ? argv[7] : "");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, items * sizeof(cl_uint), NULL, &error);
    cl_uint *values = calloc(items, sizeof *values);
    error |= clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, items * sizeof *values, values, 0, NULL, NULL);
    cl_kernel *all = calloc((size_t)kernels, sizeof *all);
    if (!strcmp(argv[6], "all"))
        error |= clCreateKernelsInProgram(program, (cl_uint)kernels, all, NULL);
    for (int n = 0; n < kernels; n++) {
        char name[32];
        snprintf(name, sizeof name, "k%d", n);
        cl_kernel kernel = all[n] ? all[n] : clCreateKernel(program, name, &error);
        seen(program, kernel);
        for (cl_uint launch = 0; launch < (cl_uint)launches; launch++) {
            error |= clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
            error |= clSetKernelArg(kernel, 1, sizeof launch, &launch);
            error |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL);
            error |= clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, items * sizeof *values, values, 0, NULL, NULL);
            cl_uint sum = 2166136261u;
            for (size_t i = 0; i < items; i++)
                sum = (sum ^ values[i]) * 16777619u;
            printf("k%d %u %08x\n", n, launch, sum);
        }
        clReleaseKernel(kernel);
    }
    clReleaseMemObject(buffer);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    printf("error %d\n", error);
    clReleaseContext(context);
    free(values);
    free(all);
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 2;
    char *text = read_file(argv[1]);
    for (int round = 0; round < (strcmp(argv[6], "again") ? 1 : 2); round++)
        run(device, text, argc, argv);
    free(text);
    return 0;
}
