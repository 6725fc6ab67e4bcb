/* Compiles by HIPRTC where that is a library of its own, as it is from HIP 7 on, without HIP. */
#include "counted.h"
#include "hip.h"

int main(void) {
    int major = -1, minor = -1;
    hiprtcProgram program = NULL;
    const char *headers[] = {"#define N 1"}, *names[] = {"n.h"}, *options[] = {"-O3"};
    printf("%d", CALL(hiprtcVersion, &major, &minor));
    printf(" %d", CALL(hiprtcCreateProgram, &program, "#include <n.h>", "n.hip", 1, headers, names));
    printf(" %d", CALL(hiprtcCompileProgram, program, 1, options));
    printf(" %d\n", CALL(hiprtcDestroyProgram, &program));
    counted();
    return 0;
}
