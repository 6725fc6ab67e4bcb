/* What a compiler of HIP makes of `<<<...>>>` and of kernels: only the host's half is compiled (clang++ -x hip
 * --offload-host-only), so no code of AMD's devices is needed. It is linked to AMD's own library. */
extern "C" {
#include "hip.h"
}
#include <stdio.h>

__attribute__((global)) void add(int *data, int n) {
    (void)data, (void)n;
}

int main() {
    int *data = nullptr;
    hipError_t error = hipMalloc((void **)&data, 64);
    add<<<dim3{3, 1, 1}, dim3{64, 1, 1}, 0, nullptr>>>(data, 16);
    printf("malloc %d, launch %d\n", error, hipGetLastError());
    return 0;
}
