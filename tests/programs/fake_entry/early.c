/* A program with a library that uses CUDA from its constructor on. */
#include <stdio.h>

int use_early(void);
int use_posix(void);

int main(void)
{
    for (int i = 0; i < 5; i++)
        if (use_early() || use_posix())
            return 1;
    return 0;
}
