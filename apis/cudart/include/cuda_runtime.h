/* The part of it that no compiler of the vendor is needed for. */
#include <cuda_runtime_api.h>
