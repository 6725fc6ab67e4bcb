/* A program of HSA on a machine without a device: what AMD's own runtime answers. */
#include "../hip/counted.h"
#include "hsa.h"

#include <errno.h>

int main(void) {
    const char *text = "none";
    uint64_t now = 0;
    hsa_signal_t signal = {0};
    void *table[7] = {0};
    int began = CALL(hsa_init);
    CALL(hsa_status_string, began, &text);
    printf("init %#x, %.40s\n", began, text);
    errno = 42;
    printf("info %#x, ", CALL(hsa_system_get_info, SYSTEM_TIMESTAMP, &now));
    printf("signal %#x, ", CALL(hsa_signal_create, 1, 0, NULL, &signal));
    printf("table %#x, ", CALL(hsa_system_get_major_extension_table, EXTENSION_LOADER, 1, sizeof table, table));
    printf("end %#x, errno %d\n", CALL(hsa_shut_down), errno);
    counted();
    return 0;
}
