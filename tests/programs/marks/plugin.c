/* A library that marks ranges by a copy of include/hetrace.h of its own. */
#include "hetrace.h"

void run_plugin(void) {
    hetrace_push("plug-in");
    hetrace_mark("in the plug-in", 1);
    hetrace_pop();
}
