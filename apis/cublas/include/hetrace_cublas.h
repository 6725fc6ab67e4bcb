/* All three interfaces of the library at once. Programs include either cublas.h, with the interface of before 4.0, or
 * cublas_v2.h, whose macros would rename that of cublas.h. */
#pragma once
#include <cublas.h>
#define CUBLAS_V2_H_
#include <cublasXt.h>
