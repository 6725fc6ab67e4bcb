/* Of <stdio.h>, what prototypes name. */
#pragma once
#include <stddef.h>
typedef struct hetrace_file FILE;
