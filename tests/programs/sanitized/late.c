/* Asks the library beside it (early.c) what its constructor has found. */
#include <stdio.h>

int early_platforms(void);

int main(void)
{
    printf("%d platforms\n", early_platforms());
    return 0;
}
