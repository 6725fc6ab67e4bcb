/* Builds a program whose source is in a file, runs each of its kernels, and prints what it sees of them:
 *
 *   inside HOW FILE LAUNCHES      HOW: source, callback, binary, link, all (clCreateKernelsInProgram), clone, again (the whole
 *                                 course twice), second (on the second device), leaves (releases nothing)
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64, MOST = 8 };

static void check(cl_int error, const char *what)
{
    if (error) {
        printf("%s: %d\n", what, error);
        exit(1);
    }
}

static cl_uint references(cl_context context)
{
    cl_uint count = 0;
    check(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL), "clGetContextInfo");
    return count;
}

static void built(cl_program program, void *user)
{
    (void)program;
    *(int *)user = 1;
}

static cl_program program_of(const char *how, cl_context context, cl_device_id device, const char *text)
{
    cl_int error;
    int called = 0, calls = !strcmp(how, "callback");
    size_t length = strlen(text);
    cl_program program;
    if (!strcmp(how, "binary"))
        program = clCreateProgramWithBinary(context, 1, &device, &length, (const unsigned char **)&text, NULL, &error);
    else
        program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    check(error, "clCreateProgramWith…");
    error = clBuildProgram(program, 1, &device, "-cl-mad-enable", calls ? built : NULL, calls ? &called : NULL);
    if (error) {
        cl_build_status status;
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL);
        printf("clBuildProgram: %d, status %d\n", error, status);
        exit(1);
    }
    if (!strcmp(how, "link")) {
        cl_program linked = clLinkProgram(context, 1, &device, "", 1, &program, NULL, NULL, &error);
        check(error, "clLinkProgram");
        check(clReleaseProgram(program), "clReleaseProgram");
        program = linked;
    }
    size_t size = 0;
    clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
    char *binary = calloc(1, size + 1);
    clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
    printf("built%s: its own binary: %s\n", called ? " and called" : "", strcmp(binary, text) ? "no" : "yes");
    free(binary);
    return program;
}

static void run(cl_command_queue queue, cl_kernel kernel, cl_mem buffer, int launches)
{
    char name[64];
    cl_uint args, count;
    size_t global = COUNT;
    check(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL), "clGetKernelInfo");
    clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof args, &args, NULL);
    for (cl_uint i = 0; i < args; i++)
        check(clSetKernelArg(kernel, i, sizeof buffer, &buffer), "clSetKernelArg");
    printf("not an argument: %d\n", clSetKernelArg(kernel, args, sizeof buffer, &buffer));
    for (int i = 0; i < launches; i++)
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    clRetainKernel(kernel);
    clReleaseKernel(kernel);
    clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL);
    check(clFinish(queue), "clFinish");
    printf("%s: %u arguments, %u references\n", name, args, count);
}

static void course(const char *how, const char *text, int launches)
{
    cl_platform_id platform;
    cl_device_id devices[2];
    cl_int error;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, NULL), "clGetDeviceIDs");
    int second = !strcmp(how, "second");
    cl_device_id device = devices[0];
    cl_context context = clCreateContext(NULL, 2, devices, NULL, NULL, &error);
    check(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof(cl_uint), NULL, &error);
    cl_program program = program_of(how, context, device, text);
    cl_kernel kernels[MOST];
    cl_uint count = 0;
    check(clCreateKernelsInProgram(program, 0, NULL, &count), "clCreateKernelsInProgram");
    if (!strcmp(how, "all")) {
        check(clCreateKernelsInProgram(program, MOST, kernels, NULL), "clCreateKernelsInProgram");
    } else {
        const char *at = text;
        for (cl_uint i = 0; i < count; i++) {
            char name[64];
            sscanf(at = strstr(at, ".entry ") + 7, "%63[^(]", name);
            kernels[i] = clCreateKernel(program, name, &error);
            check(error, "clCreateKernel");
        }
    }
    printf("no such kernel: %d\n", (clCreateKernel(program, "nothing", &error), error));
    for (cl_uint i = 0; i < count; i++) {
        if (!strcmp(how, "clone")) {
            run(queue, kernels[i], buffer, 1);
            cl_kernel copy = clCloneKernel(kernels[i], &error);
            check(clReleaseKernel(kernels[i]), "clReleaseKernel");
            kernels[i] = copy;
        }
        run(queue, kernels[i], buffer, launches);
        if (second) {
            cl_command_queue other = clCreateCommandQueue(context, devices[1], 0, &error);
            size_t global = COUNT;
            printf("elsewhere: %d\n", clEnqueueNDRangeKernel(other, kernels[i], 1, NULL, &global, NULL, 0, NULL, NULL));
            clReleaseCommandQueue(other);
        }
    }
    cl_uint numbers[COUNT];
    check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL), "clEnqueueReadBuffer");
    printf("numbers %u %u, references of the context %u\n", numbers[0], numbers[COUNT - 1], references(context));
    if (!strcmp(how, "leaves"))
        return;
    for (cl_uint i = 0; i < count; i++)
        check(clReleaseKernel(kernels[i]), "clReleaseKernel");
    check(clReleaseProgram(program), "clReleaseProgram");
    check(clReleaseMemObject(buffer), "clReleaseMemObject");
    check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
    printf("at last %u\n", references(context));
    check(clReleaseContext(context), "clReleaseContext");
}

int main(int argc, char **argv)
{
    FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (!file)
        return 2;
    static char text[1 << 20];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    int launches = argc > 3 ? atoi(argv[3]) : 3;
    for (int i = strcmp(argv[1], "again") ? 1 : 2; i > 0; i--)
        course(argv[1], text, launches);
    return 0;
}
