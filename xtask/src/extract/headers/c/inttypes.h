/* What the extraction needs of C's <inttypes.h> on 64-bit Linux. */
#pragma once
#include <stdint.h>
