/* What the extraction needs of C's <stddef.h> on 64-bit Linux. */
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __WCHAR_TYPE__ wchar_t;
#define NULL ((void *)0)
