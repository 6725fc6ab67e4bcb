/* Of <wchar.h>, what the extraction needs: the sizes. */
#include <stddef.h>
