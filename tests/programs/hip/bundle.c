/* Where the compiler of HIP puts the devices' code: a bundle with no code in it. Newer ones put the number of the file
 * behind the names, which is empty where there is one file. */
#define BUNDLE(name) \
    __attribute__((aligned(4096), section(".hip_fatbin"))) const char name[] = "__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0";
BUNDLE(__hip_fatbin)
BUNDLE(__hip_fatbin_)
__attribute__((visibility("hidden"))) void *__hip_gpubin_handle_;
