/* Its type, without what a compiler of the vendor is needed for. */
#pragma once
typedef struct { unsigned short x; } __half;
typedef __half half;
