/* Of <stdio.h>, what prototypes name. */
#pragma once
#include <stddef.h>
typedef struct hetrace_file FILE;
#ifdef __cplusplus
extern "C" {
#endif
extern FILE *stderr;
int fprintf(FILE *, const char *, ...);
#ifdef __cplusplus
}
#endif
