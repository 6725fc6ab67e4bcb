/* What the programs here have in common: they count their calls, and end at the first that fails. */
#pragma once
#include "../hip/counted.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static inline void ok(int status, int line)
{
    if (status != 0) {
        printf("line %d: status %d\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)
/* Memory of a device, as far as the libraries here go. */
#define DEVICE ((void *)0x700000001000)
