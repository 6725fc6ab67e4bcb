/* What the extraction needs of C's <errno.h>. */
#pragma once
extern int errno;
