/* Marks before and after a plug-in that marks, too, and is closed again. */
#include "hetrace.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *plugin;
    void (*run)(void);
    int i;
    hetrace_push("host");
    for (i = 0; i < 2; i++) {
        plugin = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
        if (!plugin) return puts(dlerror()), 1;
        *(void **)&run = dlsym(plugin, "run_plugin");
        run();
        if (dlclose(plugin) != 0) return 1;
    }
    hetrace_pop();
    puts(hetrace_is_traced() ? "traced" : "not traced");
    return 0;
}
