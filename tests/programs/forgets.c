/* Forgets its surroundings, and uses the driver and its runtime only then.
 *
 *   forgets nothing|environment|files
 *
 * `files`: what the session of the environment has for all processes is out of reach while libraries are opened.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[] = {"control", "reported"};

static void swap(const char *folder, int back)
{
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        char here[512], away[512];
        snprintf(here, sizeof here, "%s/%s", folder, files[i]);
        snprintf(away, sizeof away, "%s/away-%s", folder, files[i]);
        if (back ? rename(away, here) : rename(here, away))
            perror(here), exit(3);
    }
}

int main(int argc, char **argv)
{
    int what = argc > 1 ? argv[1][0] : 'n', version;
    char *session = getenv("HETRACE_SESSION"), folder[256] = "";
    if (session)
        snprintf(folder, sizeof folder, "%s", session);
    if (what == 'f' && session)
        swap(folder, 0);
    if (what == 'e')
        clearenv();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *runtime = dlopen("libcudart.so.13", RTLD_NOW);
    if (!driver || !runtime) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(int *) = (int (*)(int *))dlsym(runtime, "cudaRuntimeGetVersion");
    if (!init || !get || init(0) || get(&version))
        return 2;
    if (what == 'f' && session)
        swap(folder, 1);
    return 0;
}
