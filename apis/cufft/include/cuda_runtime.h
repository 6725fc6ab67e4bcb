/* What cublas.h needs of it. */
#pragma once
#include <stddef.h>
#include <driver_types.h>
