/* Of <math.h>, what inline functions of headers call. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
double fabs(double x);
float fabsf(float x);
double sqrt(double x);
float sqrtf(float x);
#ifdef __cplusplus
}
#endif
