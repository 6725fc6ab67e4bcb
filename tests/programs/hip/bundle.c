/* Where the compiler of HIP puts the devices' code: a bundle with no code in it. */
__attribute__((aligned(4096), section(".hip_fatbin"))) const char __hip_fatbin[] = "__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0";
