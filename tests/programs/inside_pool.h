/* What a twin of a kernel does on a fake device: takes a chunk of the pool, and records that a lane begins. Of docs/inside.md. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char TWIN[] = "__hetrace_inside";

static int is_twins_name(const char *name)
{
    size_t n = strlen(name), m = sizeof TWIN - 1;
    return n > m && !strcmp(name + n - m, TWIN);
}

/* The number of a twin's kernel, plus 1, as its text has it. */
static uint32_t number_in(const char *text, const char *name)
{
    const char *at = text ? strstr(text, name) : NULL;
    /* A move of it into a register of this name. */
    while (at && (at = strstr(at, "_rn, ")) && (at[5] < '0' || at[5] > '9'))
        at++;
    return at ? strtoul(at + 5, NULL, 10) + 1 : 1;
}

static void record_in_pool(uint64_t base, uint32_t number, int shows_full)
{
    uint64_t *pool = (uint64_t *)base;
    static uint64_t launches;
    uint32_t *counters = (uint32_t *)base + 512, asked = 0;
    for (int i = 0; i < 32; i++)
        asked += counters[16 * i];
    uint32_t counter = asked % 32;
    uint64_t chunk = 64 * (uint64_t)counters[16 * counter]++ + counter;
    if (chunk >= pool[1]) {
        /* Counted for the kernel, if no other one has its place. */
        uint32_t *slot = (uint32_t *)(base + 64 + 16 * (uint64_t)((number - 1) % 124));
        if (!slot[0])
            slot[0] = number;
        if (slot[0] == number)
            ++*(uint64_t *)(slot + 2);
        else
            pool[2]++;
        pool[3] = 1;
        if (pool[4] && shows_full)
            *(uint32_t *)pool[4] = 1;
        return;
    }
    char *at = (char *)base + 4096 * (chunk + 1);
    memset(at, 0, 4096);
    uint64_t head[3] = {++launches, 1, 2};
    uint32_t record[4] = {7, 1, 1, 3u << 28};
    memcpy(at, head, sizeof head);
    memcpy(at + 24, &number, sizeof number);
    memcpy(at + 64, record, sizeof record);
}
