/* What HIP says where there is no device. It is linked to AMD's own library. */
#include "counted.h"
#include "hip.h"

#include <stdlib.h>

int main(void) {
    int n = -1, version = 0, major = -1, minor = -1;
    void *memory = NULL;
    printf("init %d\n", CALL(hipInit, 0));
    printf("count %d", CALL(hipGetDeviceCount, &n));
    printf(" of %d\n", n);
    printf("malloc %d\n", CALL(hipMalloc, &memory, 100));
    printf("set %d\n", CALL(hipSetDevice, 0));
    printf("sync %d\n", CALL(hipDeviceSynchronize));
    /* Before 6.0 what it points at was smaller, and of other members. */
    struct {
        char bytes[128];
    } *copy = calloc(1, sizeof *copy);
    printf("copy %d\n", CALL(hipDrvMemcpy3D, copy));
    free(copy);
    printf("version %d", CALL(hipRuntimeGetVersion, &version));
    printf(" %d\n", version);
    printf("last %d\n", CALL(hipGetLastError));
    printf("name %s\n", CALL(hipGetErrorName, hipErrorNoDevice));
    hiprtcProgram program = NULL;
    printf("rtc %d\n", CALL(hiprtcVersion, &major, &minor));
    printf("create %d\n", CALL(hiprtcCreateProgram, &program, "__global__ void k() {}", "k.hip", 0, NULL, NULL));
    const char *options[] = {"--offload-arch=gfx90a", "-O3"};
    printf("compile %d\n", CALL(hiprtcCompileProgram, program, 2, options) == 0);
    printf("destroy %d\n", CALL(hiprtcDestroyProgram, &program));
    counted();
    return 4;
}
