/* Part of fake_cuda.c: notifies a fake CUPTI (fake_cupti.c) of what happens, if there is one.
 *
 * It is notified without the driver's lock, since it may give records back at once, to a tracer
 * that asks the driver something then: what a function has caused is kept until its end.
 */

struct fake_cupti_activity {
    uint32_t kind; /* 1 copy, 2 fill, 10 kernel */
    uint32_t correlation, device, context, stream;
    uint64_t start, end;
    const char *name;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t registers, static_shared, dynamic_shared, local;
    uint64_t bytes;
    uint32_t copied;
    uint32_t from, to;
    uint32_t source, destination;
    uint32_t graph;
    uint64_t node;
};

static uint32_t (*cupti_enter)(uint32_t);
static void (*cupti_exit)(uint32_t, uint32_t);
static void (*cupti_activity)(const struct fake_cupti_activity *);

/* What CUPTI calls the functions that give devices work. */
static const struct { const char *name; uint32_t cbid; } CBIDS[] = {
    {"cuLaunchKernel", 307}, {"cuLaunchKernel_ptsz", 442}, {"cuLaunchKernelEx", 652},
    {"cuLaunchKernelEx_ptsz", 653}, {"cuLaunchCooperativeKernel", 477},
    {"cuLaunchCooperativeKernel_ptsz", 478}, {"cuGraphLaunch", 514}, {"cuGraphLaunch_ptsz", 515},
    {"cuMemcpyHtoD_v2", 276}, {"cuMemcpyHtoDAsync_v2", 277}, {"cuMemcpyDtoH_v2", 278},
    {"cuMemcpyDtoHAsync_v2", 279}, {"cuMemcpyDtoD_v2", 280}, {"cuMemcpyDtoDAsync_v2", 281},
    {"cuMemcpy", 305}, {"cuMemcpyAsync", 306}, {"cuMemcpyHtoD_v2_ptds", 397},
    {"cuMemcpyDtoH_v2_ptds", 398}, {"cuMemcpyDtoD_v2_ptds", 399}, {"cuMemcpy_ptds", 407},
    {"cuMemcpyAsync_ptsz", 418}, {"cuMemcpyHtoDAsync_v2_ptsz", 420},
    {"cuMemcpyDtoHAsync_v2_ptsz", 421}, {"cuMemcpyDtoDAsync_v2_ptsz", 422},
    {"cuMemsetD8_v2", 249}, {"cuMemsetD32_v2", 251}, {"cuMemsetD8Async", 216},
    {"cuMemsetD32Async", 220}, {"cuMemsetD8_v2_ptds", 411}, {"cuMemsetD32_v2_ptds", 413},
    {"cuMemsetD8Async_ptsz", 428}, {"cuMemsetD32Async_ptsz", 430},
};

static __thread struct {
    uint32_t cbid, correlation;
    int count, room;
    struct fake_cupti_activity *caused;
} in_call;

static void cupti_begins(const char *name)
{
    if (!cupti_activity) {
        void *library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            library = dlopen("libcupti.so.12", RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            return;
        cupti_enter = (uint32_t(*)(uint32_t))dlsym(library, "fake_cupti_enter");
        cupti_exit = (void (*)(uint32_t, uint32_t))dlsym(library, "fake_cupti_exit");
        cupti_activity =
            (void (*)(const struct fake_cupti_activity *))dlsym(library, "fake_cupti_activity");
        if (!cupti_enter || !cupti_exit || !cupti_activity)
            return;
    }
    uint32_t cbid = 0;
    for (size_t i = 0; i < sizeof CBIDS / sizeof *CBIDS; i++)
        if (!strcmp(CBIDS[i].name, name))
            cbid = CBIDS[i].cbid;
    if (cbid == 0)
        return; /* It may be asked from inside of a callback. */
    uint32_t correlation = cupti_enter(cbid);
    in_call.cbid = cbid;
    in_call.correlation = correlation;
    in_call.count = 0;
}

static void notify_cupti(struct fake_stream *s, const struct node *n, int64_t start)
{
    uint32_t what = !strcmp(n->kind, "kernel") ? 10 : !strcmp(n->kind, "fill") ? 2
                    : strcmp(n->kind, "host") && strcmp(n->kind, "event") ? 1 : 0;
    if (!cupti_activity || !in_call.cbid || !what)
        return;
    if (in_call.count == in_call.room)
        in_call.caused = realloc(in_call.caused, (in_call.room = 2 * in_call.room + 64) * sizeof *in_call.caused);
    int write = !strcmp(n->kind, "write"), read = !strcmp(n->kind, "read");
    struct fake_cupti_activity *a = &in_call.caused[in_call.count++];
    *a = (struct fake_cupti_activity){
        .kind = what, .correlation = in_call.correlation, .device = s->ctx->device,
        .context = s->ctx->id, .stream = s->id, .start = to_host(s->ctx->device, start),
        .end = to_host(s->ctx->device, s->end), .name = n->function ? n->function->name : NULL,
        .registers = 40, .static_shared = 4096, .local = 8, .dynamic_shared = n->shared,
        .bytes = n->bytes, .copied = write ? 1 : read ? 2 : 8, .from = n->from,
        .to = n->to, .graph = n->graph, .node = n->number};
    memcpy(a->grid, n->grid, sizeof a->grid);
    memcpy(a->block, n->block, sizeof a->block);
}

static void cupti_ends(void)
{
    if (!cupti_activity || !in_call.cbid)
        return;
    uint32_t cbid = in_call.cbid;
    in_call.cbid = 0; /* What a tracer asks the driver from here causes nothing. */
    for (int i = 0; i < in_call.count; i++)
        cupti_activity(&in_call.caused[i]);
    cupti_exit(cbid, in_call.correlation);
}
