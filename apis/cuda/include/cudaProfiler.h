/* The profiler's declarations are in hetrace_cuda.h. */
