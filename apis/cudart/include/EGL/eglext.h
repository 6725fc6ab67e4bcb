/* Nothing more of EGL is needed. */
#include <EGL/egl.h>
