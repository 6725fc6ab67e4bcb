/* Chooses AddressSanitizer's options itself. */
#include <stdio.h>

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=7";
}

int main(void)
{
    puts("hello");
    return 3;
}
