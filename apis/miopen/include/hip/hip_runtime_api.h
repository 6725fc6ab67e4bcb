/* The types of HIP that MIOpen's prototypes use. */
#pragma once
#include <stdint.h>
typedef struct ihipStream_t *hipStream_t;
