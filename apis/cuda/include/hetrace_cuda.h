/* Functions of the driver that libcuda exports and that none of the headers in
 * the packages declare. */
#pragma once
#include <vdpau/vdpau.h>
#include <cuda.h>

typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;

CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
