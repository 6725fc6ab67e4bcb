/* Two ranks of oneCCL's C interface, each in a process of its own. The parent counts what both call, as they call the same. */
#include "../hip/counted.h"
#include "oneccl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(int rank, onecclUniqueId id) {
    static float a[4096], b[4096];
    size_t counts[2] = {10, 20};
    onecclComm_t world, half;
    int size, mine;
    CALL(onecclSetDevice, 0);
    CALL(onecclCommInitRank, &world, 2, id, rank);
    CALL(onecclCommCount, world, &size);
    CALL(onecclCommUserRank, world, &mine);
    CALL(onecclAllReduce, a, b, 1000, type_float, max, world, NULL);
    CALL(onecclAllGather, a, b, 500, type_int32, world, NULL);
    CALL(onecclBroadcast, a, b, 64, type_bfloat16, 1, world, NULL);
    CALL(onecclAllToAllV, a, counts, b, counts, type_float, world, NULL);
    count("onecclGroupStart"), onecclGroupStart();
    CALL(onecclSend, a, 256, type_float, 1 - rank, world, NULL);
    CALL(onecclRecv, b, 256, type_float, 1 - rank, world, NULL);
    count("onecclGroupEnd"), onecclGroupEnd();
    CALL(onecclCommSplit, world, 7, rank, &half, NULL);
    CALL(onecclAllReduce, a, b, 10, type_float, sum, half, NULL);
    errno = 42;
    int refused = CALL(onecclAllReduce, a, b, 10, 99, sum, half, NULL);
    count("onecclGroupEnd");
    int unpaired = onecclGroupEnd();
    printf("rank %d of %d, refused %d %d, errno %d: %s\n", mine, size, refused, unpaired, errno,
           CALL(onecclGetErrorString, refused));
    CALL(onecclCommDestroy, half);
    CALL(onecclCommDestroy, world);
    counted();
    fflush(stdout);
}

int main(void) {
    onecclUniqueId id;
    int version;
    CALL(onecclGetVersion, &version);
    CALL(onecclGetUniqueId, &id);
    counted();
    fflush(stdout);
    memset(counts, 0, sizeof counts);
    for (int rank = 0; rank < 2; rank++) {
        if (fork() == 0) {
            work(rank, id);
            _exit(0);
        }
        wait(NULL);
    }
    printf("version %d\n", version);
    return 0;
}
