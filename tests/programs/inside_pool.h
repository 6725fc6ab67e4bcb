/* What a twin of a kernel does on a fake device: takes room in the pool by its strategy, and records that a lane begins. Of
 * docs/inside.md. */
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

/* Numbers of strategies. */
enum { CHUNKS, CHUNKS_PER_SM, GLOBAL_CURSOR, SM_CURSOR, PADDED };

/* How a pool is laid out. */
struct pool_layout {
    char *first;                /* its first place */
    uint32_t *counters;         /* in steps of 64 bytes */
    uint32_t count, rows;
    uint32_t begin;             /* what the first row's counters begin with */
};

static struct pool_layout layout_of(uint64_t base)
{
    uint32_t *words = (uint32_t *)base, strategy = words[0];
    int inner = strategy == CHUNKS || strategy == PADDED;
    struct pool_layout layout = {
        .first = (char *)base + (inner ? 4096 : 36864),
        .counters = words + (inner ? 512 : 1024),
        .count = inner ? 32 : words[1],
        .rows = strategy == PADDED ? 1 : 2,
        .begin = strategy == PADDED ? 0x80000000u : 0,
    };
    return layout;
}

/* Takes one of those in a row of places, of which each has so many; NULL if there is none. */
static char *take(uint64_t base, uint32_t row, uint32_t each)
{
    struct pool_layout layout = layout_of(base);
    uint32_t asked = 0;
    for (uint32_t i = 0; i < layout.count; i++)
        asked += layout.counters[16 * i + 4 * row] - layout.begin;
    uint32_t counter = asked % layout.count;
    uint32_t number = layout.counters[16 * counter + 4 * row]++ - layout.begin;
    uint64_t place = ((uint64_t)(number / each) * layout.rows + row) * layout.count + counter;
    if (place >= ((uint64_t *)base)[1])
        return NULL;
    return layout.first + 4096 * place + number % each * (4096 / each);
}

/* A record that found no room is counted for the kernel, if no other one has its place. */
static void lose(uint64_t base, uint32_t number, int shows_full)
{
    uint64_t *pool = (uint64_t *)base;
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
}

static void record_in_pool(uint64_t base, uint32_t number, int shows_full)
{
    static uint64_t launches;
    uint32_t strategy = *(uint32_t *)base;
    int cursors = strategy == GLOBAL_CURSOR || strategy == SM_CURSOR;
    char *at = take(base, cursors ? 1 : 0, cursors ? 64 : 1);
    char *record_at = at && cursors ? take(base, 0, 128) : at ? at + 64 : NULL;
    if (at) {
        uint64_t head[3] = {++launches, 1, 2};
        memset(at, 0, cursors ? 64 : 4096);
        memcpy(at, head, sizeof head);
        memcpy(at + 24, &number, sizeof number);
    }
    if (!record_at) {
        lose(base, number, shows_full);
        return;
    }
    uint32_t record[4] = {7, 1, 1, 3u << 28}, leader = (uint32_t)((at - (char *)base) / 64);
    memcpy(record_at, record, sizeof record);
    if (cursors)
        memcpy(record_at + 16, &leader, sizeof leader);
}
