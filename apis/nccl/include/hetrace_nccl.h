/* Names without `struct` that some versions of NCCL's headers use in C as in
 * C++. */
#pragma once
typedef struct ncclMultimemHandle ncclMultimemHandle;
