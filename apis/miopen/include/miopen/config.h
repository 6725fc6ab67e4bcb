/* What MIOpen's build writes into a header of this name: it is the library above HIP. */
#pragma once
#define MIOPEN_BACKEND_OPENCL 0
#define MIOPEN_BACKEND_HIP 1
