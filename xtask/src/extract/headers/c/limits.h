/* What the extraction needs of C's <limits.h> on 64-bit Linux. */
#pragma once
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (INT_MAX * 2U + 1U)
