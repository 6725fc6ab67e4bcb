/* oneMKL's integers, read as types of their own: they have 4 bytes or 8 by the interface that a program is linked to, or
 * chooses when it runs. All 8 are passed on; src/measure.rs decides what is recorded of them. */
#pragma once
typedef long long int mkl_int;
typedef unsigned long long int mkl_uint;
#define MKL_INT mkl_int
#define MKL_UINT mkl_uint
/* Stands for an integer that had other numbers in 4 and in 8 bytes when it was not known yet how many it has. */
#define MKL_INT_UNKNOWN (-9223372036854775807LL - 1)
