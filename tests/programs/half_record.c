/* Stops in the middle of a record: half_record BEFORE AFTER
 *
 * Launches BEFORE kernels, then one whose global size lies in a page that cannot be read. Who records the call faults while
 * it copies that into its record; the handler writes the file `half`, stops the process, and makes the page readable when it
 * goes on. Then AFTER more launches. Writes whose instruction it was that faulted first: FAULT FILE.
 */
#include "cl_util.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static const char *const source = "kernel void addone(global int *p) { p[get_global_id(0)] += 1; }\n";

static size_t *page;
static volatile sig_atomic_t faults;
static void *volatile at[2];

static void on_fault(int signal_, siginfo_t *info, void *context)
{
    (void)signal_;
    if (info->si_addr < (void *)page || info->si_addr >= (void *)((char *)page + 4096) || faults++)
        _exit(99);
#ifdef __x86_64__
    /* The instruction, and who called it: copying is a function of the C library. */
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    at[0] = (void *)registers[REG_RIP];
    at[1] = *(void **)registers[REG_RSP];
#else
    (void)context;
#endif
    int file = open("half", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    char text[16];
    int length = 0;
    for (int pid = getpid(); pid > 0; pid /= 10)
        text[length++] = (char)('0' + pid % 10);
    while (length > 0)
        if (write(file, &text[--length], 1) != 1)
            _exit(98);
    close(file);
    kill(getpid(), SIGSTOP);
    mprotect(page, 4096, PROT_READ);
}

int main(int argc, char **argv)
{
    int before = argc > 1 ? atoi(argv[1]) : 1, after = argc > 2 ? atoi(argv[2]) : 1;
    struct dev dev = dev_open();
    cl_program program = build(&dev, source, "");
    cl_command_queue queue = MAKE(clCreateCommandQueue(dev.context, dev.device, 0, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "addone", &err));
    cl_mem memory = MAKE(clCreateBuffer(dev.context, CL_MEM_READ_WRITE, 4096, NULL, &err));
    OK(clSetKernelArg(kernel, 0, sizeof memory, &memory));

    size_t size = 64;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = size;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);

    for (int n = 0; n < before; n++)
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    mprotect(page, 4096, PROT_NONE);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, page, NULL, 0, NULL, NULL));
    for (int n = 0; n < after; n++)
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    for (int n = 0; n < 2; n++) {
        Dl_info of;
        if (at[n] && dladdr(at[n], &of) && of.dli_fname)
            printf("FAULT %s\n", of.dli_fname);
    }
    printf("FAULTS %d\n", (int)faults);
    return 0;
}
