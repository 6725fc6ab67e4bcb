/* Opens libraries, one after another, and says which of them it could not open. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **names) {
    int failed = 0;
    for (int i = 1; i < count; i++) {
        if (!dlopen(names[i], RTLD_NOW)) {
            printf("%s\n", dlerror());
            failed = 1;
        }
    }
    return failed;
}
