/* What the extraction needs of C's <stddef.h> on 64-bit Linux. */
#pragma once
typedef __SIZE_TYPE__ size_t;
#ifndef __cplusplus
typedef __WCHAR_TYPE__ wchar_t;
#endif
#ifdef __cplusplus
#define NULL 0
#else
#define NULL ((void *)0)
#endif
typedef long ptrdiff_t;
