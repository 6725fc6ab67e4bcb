/* What NVSHMEM's headers need of it. */
#pragma once
#include "cuda_runtime.h"
