/* A fake of libmkl_rt: it opens one of the interfaces when it is first called, by MKL_INTERFACE_LAYER, and passes all
 * arguments of all calls on as they are, by a jump. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("hidden"))) void *targets[16];

#define NAMES(F)                                                                                                       \
    F(0, MKL_Get_Version) F(1, cblas_ddot) F(2, LAPACKE_dgesv) F(3, DftiCreateDescriptor_d_1d)                           \
    F(4, DftiCreateDescriptor_d_md) F(5, DftiSetValue) F(6, DftiGetValue) F(7, DftiComputeForward)                       \
    F(8, DftiFreeDescriptor) F(9, cblas_ddot_64)

__attribute__((visibility("hidden"), used)) void look_up(void) {
    const char *layer = getenv("MKL_INTERFACE_LAYER");
    int wide = layer && strcmp(layer, "ILP64") == 0;
    void *interface = dlopen(wide ? "libmkl_intel_ilp64.so.3" : "libmkl_intel_lp64.so.3", RTLD_NOW | RTLD_GLOBAL);
    if (!interface) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define LOOK_UP(number, name) targets[number] = dlsym(interface, #name);
    NAMES(LOOK_UP)
}

/* All registers with arguments are kept over the look-up. */
#define JUMP(number, name)                                                                                             \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"                                            \
            "cmpq $0, targets+8*" #number "(%rip)\njne 1f\n"                                                             \
            "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\nsub $64, %rsp\n"                 \
            "movups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\nmovups %xmm2, 32(%rsp)\nmovups %xmm3, 48(%rsp)\n"             \
            "call look_up\n"                                                                                             \
            "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\nmovups 32(%rsp), %xmm2\nmovups 48(%rsp), %xmm3\n"             \
            "add $64, %rsp\npop %rax\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"                        \
            "1: jmp *targets+8*" #number "(%rip)\n");
NAMES(JUMP)
