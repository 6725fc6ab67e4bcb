/* The types of the CUDA driver that NCCL's headers use. */
#pragma once
typedef unsigned int CUmemLocationType;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUstream_st *CUstream;
