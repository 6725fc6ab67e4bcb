/* The types of VDPAU that CUDA's prototypes use. */
#pragma once
#include <stdint.h>
typedef uint32_t VdpDevice;
typedef uint32_t VdpFuncId;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpVideoSurface;
typedef int VdpStatus;
typedef VdpStatus VdpGetProcAddress(VdpDevice, VdpFuncId, void **);
