/* Part of fake_cuda.c: kernels that record what happens inside them, as far as their driver has to do with it. */

#include "../inside_pool.h"

static int is_twin(struct fake_function *f)
{
    return is_twins_name(f->name);
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

/* What a twin does beside what its kernel does. */
static void record_inside(struct fake_stream *s, struct fake_function *f)
{
    uint64_t base = f->module && is_twin(f) ? base_of(f->module, s->ctx)->value : 0;
    if (base)
        record_in_pool(base, number_in(f->module->text, f->name), getenv("FAKE_CUDA_FULL") != NULL);
}
