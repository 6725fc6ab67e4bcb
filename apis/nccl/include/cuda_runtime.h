/* The types of the CUDA runtime that NCCL's prototypes use. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
