/* Part of fake_cuda.c: kernels that record what happens inside them, as far as their driver has to do with it. */

static const char TWIN[] = "__hetrace_inside";

static int is_twin(struct fake_function *f)
{
    size_t n = strlen(f->name), m = sizeof TWIN - 1;
    return n > m && !strcmp(f->name + n - m, TWIN);
}

/* The variable of code in a context; a module has one, a library one for each context. */
static struct variable *base_of(struct fake_module *m, struct fake_ctx *c)
{
    struct fake_ctx *of = m->library ? c : NULL;
    for (struct variable *v = m->bases; v; v = v->next)
        if (v->ctx == of)
            return v;
    struct variable *v = calloc(1, sizeof *v);
    *v = (struct variable){.ctx = of, .next = m->bases};
    return m->bases = v;
}

/* The number of a twin's kernel, plus 1, as its text has it. */
static uint32_t number_of(struct fake_function *f)
{
    const char *at = f->module->text ? strstr(f->module->text, f->name) : NULL;
    /* A move of it into a register of this name. */
    while (at && (at = strstr(at, "_rn, ")) && (at[5] < '0' || at[5] > '9'))
        at++;
    return at ? strtoul(at + 5, NULL, 10) + 1 : 1;
}

/* What a twin does: takes a chunk, and records that a lane begins. */
static void record_inside(struct fake_stream *s, struct fake_function *f)
{
    uint64_t base = f->module && is_twin(f) ? base_of(f->module, s->ctx)->value : 0;
    if (!base)
        return;
    uint64_t *pool = (uint64_t *)base;
    static uint64_t launches;
    uint32_t *counters = (uint32_t *)base + 512, asked = 0;
    for (int i = 0; i < 32; i++)
        asked += counters[16 * i];
    uint32_t counter = asked % 32;
    uint64_t chunk = 64 * (uint64_t)counters[16 * counter]++ + counter;
    if (chunk >= pool[1]) {
        /* Counted for the kernel, if no other one has its place. */
        uint32_t number = number_of(f), *slot = (uint32_t *)(base + 64 + 16 * (uint64_t)((number - 1) % 124));
        if (!slot[0])
            slot[0] = number;
        if (slot[0] == number)
            ++*(uint64_t *)(slot + 2);
        else
            pool[2]++;
        pool[3] = 1;
        if (pool[4] && getenv("FAKE_CUDA_FULL"))
            *(uint32_t *)pool[4] = 1;
        return;
    }
    char *at = (char *)base + 4096 * (chunk + 1);
    memset(at, 0, 4096);
    uint64_t head[3] = {++launches, 1, 2};
    uint32_t number = number_of(f), record[4] = {7, 1, 1, 3u << 28};
    memcpy(at, head, sizeof head);
    memcpy(at + 24, &number, sizeof number);
    memcpy(at + 64, record, sizeof record);
}
