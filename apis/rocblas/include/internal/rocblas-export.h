#include "../rocblas-export.h"
