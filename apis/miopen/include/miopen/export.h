/* What MIOpen's build writes into a header of this name: how functions are exported. */
#pragma once
#define MIOPEN_EXPORT
#define MIOPEN_NO_EXPORT
#define MIOPEN_DEPRECATED
#define MIOPEN_DEPRECATED_EXPORT
