/* `bool` as C has it; C++ has its own. */
#ifndef __cplusplus
#define bool _Bool
#define true 1
#define false 0
#endif
