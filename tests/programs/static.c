/* A program without a dynamic linker: nothing can be preloaded, it runs untouched. */
#include <stdio.h>

int main(void)
{
    puts("hello from a static program");
    return 0;
}
