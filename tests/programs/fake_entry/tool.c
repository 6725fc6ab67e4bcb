/* Stands for libcupti: what it asks the driver is its own business. */
#include <dlfcn.h>
#include <stddef.h>

int cuptiActivityEnable(void)
{
    int number = 0;
    int (*version)(int *) = (int (*)(int *))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuDriverGetVersion");
    return !version || version(&number) || number != 12090;
}
