/* What the extraction needs of C's <stddef.h> on 64-bit Linux. */
#pragma once
typedef __SIZE_TYPE__ size_t;
#ifndef __cplusplus
typedef __WCHAR_TYPE__ wchar_t;
#endif
#define NULL ((void *)0)
