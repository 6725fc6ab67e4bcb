/* What inline functions of headers call. */
#pragma once
double fabs(double x);
float fabsf(float x);
double sqrt(double x);
float sqrtf(float x);
