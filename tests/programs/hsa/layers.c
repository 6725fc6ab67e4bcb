/* A program of HIP, which stands on HSA here. */
#include <stddef.h>
#include <stdio.h>

int hipMemcpy(void *dst, const void *src, size_t size, int kind);

int main(void) {
    char from[256] = "copied", to[256] = "";
    for (int i = 0; i < 3; i++)
        hipMemcpy(to, from, sizeof to, 1);
    printf("%s\ncalls hipMemcpy 3\n", to);
    return 0;
}
