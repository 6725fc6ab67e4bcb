/* `bool` as C has it. */
#define bool _Bool
#define true 1
#define false 0
