/* Of <stdlib.h>, what the extraction needs: the sizes. */
#include <stddef.h>
#ifdef __cplusplus
extern "C"
#endif
void exit(int);
