/* The types of EGL that CUDA's prototypes use. */
#pragma once
#include <stdint.h>
typedef int32_t EGLint;
typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;
