/* Part of fake_cuda.c: graphs. Their nodes run one after the other, none before those that it waits for. */

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    (void)flags;
    ENTER(cuGraphCreate);
    *out = calloc(1, sizeof **out);
    **out = (struct fake_graph){.state = ALIVE, .id = next_id++};
    LEAVE(CUDA_SUCCESS);
}

/* A node: which of a graph it is. */
struct fake_node { int state; struct fake_graph *graph; int index; };

/* The function, or the kernel, and how many threads: what is needed here of a node's parameters. With `any` they are behind
 * what kind they are of. */
struct kernel_params { struct fake_function *function; unsigned sizes[7], pad; void **params, **extra; struct fake_function *kernel; struct fake_ctx *ctx; };
struct fill_params { uint64_t target, pitch; unsigned value, element; uint64_t width, height; };

static CUresult read_params(struct node *n, const void *from, int has_kernel, int any)
{
    const int *kind = from;
    if (any && *kind)
        return CUDA_ERROR_INVALID_VALUE;
    const struct kernel_params *p = any ? (const void *)((const char *)from + 16) : from;
    struct fake_function *f = p->function ? p->function : has_kernel ? p->kernel : NULL;
    if (!f || f->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    if (getenv("FAKE_CUDA_REFUSES_LAUNCH") && strstr(f->name, getenv("FAKE_CUDA_REFUSES_LAUNCH")))
        return 701;
    const unsigned *sizes = p->sizes;
    n->kind = "kernel", n->function = f, n->shared = sizes[6];
    for (int i = 0; i < 3; i++)
        n->grid[i] = sizes[i], n->block[i] = sizes[3 + i];
    return CUDA_SUCCESS;
}

/* A node has one handle as long as its graph lives. */
static struct fake_node *node_of(CUgraph g, int index)
{
    struct node *n = &g->nodes[index];
    if (!n->handle) {
        n->handle = calloc(1, sizeof *n->handle);
        *n->handle = (struct fake_node){.state = ALIVE, .graph = g, .index = index};
    }
    return n->handle;
}

/* Whether it is a node of a graph that lives. */
static int is_of(const struct fake_node *n, const struct fake_graph *g)
{
    return g && g->state == ALIVE && n && n->state == ALIVE && n->graph == g && n->index < g->count;
}

static CUresult wait_for(struct node *n, int index)
{
    n->waits = realloc(n->waits, (n->wait_count + 1) * sizeof *n->waits);
    n->waits[n->wait_count++] = index;
    return CUDA_SUCCESS;
}

static CUresult add(void **out, CUgraph g, struct node n, struct fake_node *const *d, size_t count)
{
    if (!g || g->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count; i++)
        if (!is_of(d[i], g))
            return CUDA_ERROR_INVALID_VALUE;
    if (g->count == g->room)
        g->nodes = realloc(g->nodes, (g->room = 2 * g->room + 64) * sizeof *g->nodes);
    g->nodes[g->count] = n;
    for (size_t i = 0; i < count; i++)
        wait_for(&g->nodes[g->count], d[i]->index);
    *out = node_of(g, g->count++);
    return CUDA_SUCCESS;
}

static CUresult add_node(void **out, CUgraph g, const void *params, int has_kernel, int any, void *d, size_t count)
{
    struct node n = {0};
    CUresult e = read_params(&n, params, has_kernel, any);
    return e ? e : add(out, g, n, d, count);
}

/* A node of a graph, or of an executable of that graph. */
static CUresult set_node(CUgraph g, const struct fake_node *node, const void *params, int has_kernel, int any)
{
    if (!g || g->state != ALIVE || !is_of(node, g->of ? g->of : g))
        return CUDA_ERROR_INVALID_VALUE;
    return read_params(&g->nodes[node->index], params, has_kernel, any);
}

/* As the driver does: of a library's kernel its function in the current context, and where there is room the kernel, too. */
static CUresult get_node(const struct fake_node *node, void *out, int has_kernel, int any)
{
    const struct node *n = &node->graph->nodes[node->index];
    if (!n->function)
        return CUDA_ERROR_INVALID_VALUE;
    if (any)
        memset(out, 0, 256);
    struct kernel_params *p = any ? (void *)((char *)out + 16) : out;
    struct fake_function *kernel = n->function->kernel ? n->function->kernel : n->function->module->library ? n->function : NULL;
    p->function = n->function;
    if (kernel && function_of(&p->function, kernel) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (has_kernel)
        p->kernel = kernel;
    for (int i = 0; i < 3; i++)
        p->sizes[i] = n->grid[i], p->sizes[3 + i] = n->block[i];
    p->sizes[6] = n->shared;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddKernelNode(void **out, CUgraph g, void *d, size_t n, const void *p)
{ ENTER(cuGraphAddKernelNode); LEAVE(add_node(out, g, p, 0, 0, d, n)); }
EXPORT CUresult cuGraphAddKernelNode_v2(void **out, CUgraph g, void *d, size_t n, const void *p)
{ ENTER(cuGraphAddKernelNode_v2); LEAVE(add_node(out, g, p, 1, 0, d, n)); }
EXPORT CUresult cuGraphAddNode(void **out, CUgraph g, void *d, size_t n, void *p)
{ ENTER(cuGraphAddNode); LEAVE(add_node(out, g, p, 1, 1, d, n)); }
EXPORT CUresult cuGraphAddNode_v2(void **out, CUgraph g, void *d, const void *data, size_t n, void *p)
{ (void)data; ENTER(cuGraphAddNode_v2); LEAVE(add_node(out, g, p, 1, 1, d, n)); }
EXPORT CUresult cuGraphKernelNodeSetParams(struct fake_node *node, const void *p)
{ ENTER(cuGraphKernelNodeSetParams); LEAVE(set_node(node->graph, node, p, 0, 0)); }
EXPORT CUresult cuGraphKernelNodeSetParams_v2(struct fake_node *node, const void *p)
{ ENTER(cuGraphKernelNodeSetParams_v2); LEAVE(set_node(node->graph, node, p, 1, 0)); }
EXPORT CUresult cuGraphNodeSetParams(struct fake_node *node, void *p)
{ ENTER(cuGraphNodeSetParams); LEAVE(set_node(node->graph, node, p, 1, 1)); }
EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, struct fake_node *node, const void *p)
{ ENTER(cuGraphExecKernelNodeSetParams); LEAVE(set_node(x, node, p, 0, 0)); }
EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, struct fake_node *node, const void *p)
{ ENTER(cuGraphExecKernelNodeSetParams_v2); LEAVE(set_node(x, node, p, 1, 0)); }
EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec x, struct fake_node *node, void *p)
{ ENTER(cuGraphExecNodeSetParams); LEAVE(set_node(x, node, p, 1, 1)); }
EXPORT CUresult cuGraphKernelNodeGetParams(struct fake_node *node, void *out)
{ ENTER(cuGraphKernelNodeGetParams); LEAVE(get_node(node, out, 0, 0)); }
EXPORT CUresult cuGraphKernelNodeGetParams_v2(struct fake_node *node, void *out)
{ ENTER(cuGraphKernelNodeGetParams_v2); LEAVE(get_node(node, out, 1, 0)); }
EXPORT CUresult cuGraphNodeGetParams(struct fake_node *node, void *out)
{ ENTER(cuGraphNodeGetParams); LEAVE(get_node(node, out, 1, 1)); }

/* Of a CUDA_MEMCPY3D: addresses of any kind. */
EXPORT CUresult cuGraphMemcpyNodeGetParams(struct fake_node *node, uint64_t out[25])
{
    ENTER(cuGraphMemcpyNodeGetParams);
    const struct node *n = &node->graph->nodes[node->index];
    memset(out, 0, 200);
    out[4] = out[15] = 4;
    out[6] = n->source, out[17] = n->target;
    out[22] = n->bytes, out[23] = out[24] = 1;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphMemsetNodeGetParams(struct fake_node *node, struct fill_params *out)
{
    ENTER(cuGraphMemsetNodeGetParams);
    const struct node *n = &node->graph->nodes[node->index];
    *out = (struct fill_params){.target = n->target, .element = 1, .width = n->bytes, .height = 1};
    LEAVE(CUDA_SUCCESS);
}

static CUresult set_fill(CUgraph g, const struct fake_node *node, const struct fill_params *p)
{
    if (!g || g->state != ALIVE || !is_of(node, g->of ? g->of : g))
        return CUDA_ERROR_INVALID_VALUE;
    g->nodes[node->index].bytes = p->element * p->width * p->height;
    g->nodes[node->index].target = p->target;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemsetNodeSetParams(struct fake_node *node, const struct fill_params *p)
{ ENTER(cuGraphMemsetNodeSetParams); LEAVE(set_fill(node->graph, node, p)); }
EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, struct fake_node *node, const struct fill_params *p, CUcontext c)
{ (void)c; ENTER(cuGraphExecMemsetNodeSetParams); LEAVE(set_fill(x, node, p)); }

EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec x, struct fake_node *node, unsigned is_enabled)
{
    ENTER(cuGraphNodeSetEnabled);
    if (!x || x->state != ALIVE || !is_of(node, x->of))
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    x->nodes[node->index].is_off = !is_enabled;
    LEAVE(CUDA_SUCCESS);
}

/* Memory of the graph's own: such a graph can't be copied. */
EXPORT CUresult cuGraphAddMemAllocNode(void **out, CUgraph g, void *d, size_t n, void *p)
{ (void)p; ENTER(cuGraphAddMemAllocNode); LEAVE(add(out, g, (struct node){.kind = "alloc"}, d, n)); }

EXPORT CUresult cuGraphAddEventRecordNode(void **out, CUgraph g, void *d, size_t n, CUevent event)
{
    ENTER(cuGraphAddEventRecordNode);
    CUresult e = event_is(event);
    LEAVE(e ? e : add(out, g, (struct node){.kind = "event", .event = event}, d, n));
}

EXPORT CUresult cuGraphGetNodes(CUgraph g, void **nodes, size_t *count)
{
    ENTER(cuGraphGetNodes);
    for (size_t i = 0; nodes && i < *count && i < (size_t)g->count; i++)
        nodes[i] = node_of(g, (int)i);
    *count = g->count;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphNodeGetType(struct fake_node *node, int *out)
{
    ENTER(cuGraphNodeGetType);
    static const struct { const char *kind; int type; } all[] = {
        {"kernel", 0}, {"copy", 1}, {"read", 1}, {"write", 1}, {"fill", 2}, {"host", 3}, {"event", 7}, {"alloc", 10}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].kind, node->graph->nodes[node->index].kind))
            *out = all[i].type;
    LEAVE(CUDA_SUCCESS);
}

/* Says the edges, or how many there are. */
EXPORT CUresult cuGraphGetEdges(CUgraph g, void **from, void **to, size_t *count)
{
    ENTER(cuGraphGetEdges);
    size_t found = 0;
    if (getenv("FAKE_CUDA_EDGES"))
        LEAVE(918); /* CUDA_ERROR_LOSSY_QUERY */
    for (int i = 0; i < g->count; i++)
        for (int j = 0; j < g->nodes[i].wait_count; j++, found++)
            if (from && found < *count)
                from[found] = node_of(g, g->nodes[i].waits[j]), to[found] = node_of(g, i);
    *count = found;
    LEAVE(CUDA_SUCCESS);
}

static CUresult remove_edge(CUgraph g, int from, int to)
{
    struct node *n = &g->nodes[to];
    for (int i = 0; i < n->wait_count; i++)
        if (n->waits[i] == from) {
            n->waits[i] = n->waits[--n->wait_count];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult edges(CUgraph g, struct fake_node *const *from, struct fake_node *const *to, size_t n, int adds)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_of(from[i], g) || !is_of(to[i], g))
            return CUDA_ERROR_INVALID_VALUE;
        CUresult e = adds ? wait_for(&g->nodes[to[i]->index], from[i]->index) : remove_edge(g, from[i]->index, to[i]->index);
        if (e)
            return e;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddDependencies(CUgraph g, void *from, void *to, size_t n)
{ ENTER(cuGraphAddDependencies); LEAVE(edges(g, from, to, n, 1)); }
EXPORT CUresult cuGraphRemoveDependencies(CUgraph g, void *from, void *to, size_t n)
{ ENTER(cuGraphRemoveDependencies); LEAVE(edges(g, from, to, n, 0)); }

static struct fake_graph *copy_of(CUgraph g, int keeps_handles)
{
    struct fake_graph *copy = malloc(sizeof *copy);
    *copy = *g;
    copy->room = g->count + 1;
    copy->nodes = malloc(copy->room * sizeof *g->nodes);
    memcpy(copy->nodes, g->nodes, g->count * sizeof *g->nodes);
    for (int i = 0; i < g->count; i++) {
        struct node *n = &copy->nodes[i];
        n->waits = memcpy(malloc((n->wait_count + 1) * sizeof *n->waits), n->waits ? n->waits : &i, n->wait_count * sizeof *n->waits);
        n->handle = keeps_handles ? n->handle : NULL;
    }
    return copy;
}

EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph g)
{
    ENTER(cuGraphClone);
    for (int i = 0; i < g->count; i++)
        if (!strcmp(g->nodes[i].kind, "alloc"))
            LEAVE(801); /* CUDA_ERROR_NOT_SUPPORTED */
    if (getenv("FAKE_CUDA_REFUSES_CLONE"))
        LEAVE(801);
    *out = copy_of(g, 0);
    (*out)->original = g;
    (*out)->id = next_id++;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphNodeFindInClone(void **out, struct fake_node *node, CUgraph clone)
{
    ENTER(cuGraphNodeFindInClone);
    if (!is_of(node, clone->original))
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    *out = node_of(clone, node->index);
    LEAVE(CUDA_SUCCESS);
}

static CUresult instantiate(CUgraphExec *out, CUgraph g)
{
    if (!g || g->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = copy_of(g, 1);
    (*out)->of = g;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long f)
{ (void)f; ENTER(cuGraphInstantiateWithFlags); LEAVE(instantiate(x, g)); }
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *x, CUgraph g, void **n, char *b, size_t c)
{ (void)n, (void)b, (void)c; ENTER(cuGraphInstantiate_v2); LEAVE(instantiate(x, g)); }
EXPORT CUresult cuGraphExecGetId(CUgraphExec x, unsigned *id)
{
    ENTER(cuGraphExecGetId);
    /* As drivers before CUDA 13.1 do, which do not have it. */
    if (getenv("FAKE_CUDA_NO_IDS"))
        LEAVE(CUDA_ERROR_NOT_FOUND);
    *id = x->id;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, void *info)
{
    (void)info;
    ENTER(cuGraphExecUpdate_v2);
    int same = x->count == g->count;
    for (int i = 0; same && i < g->count; i++)
        same = !strcmp(x->nodes[i].kind, g->nodes[i].kind);
    if (!same)
        LEAVE(910); /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
    struct fake_graph *now = copy_of(g, 1);
    x->nodes = now->nodes;
    x->of = g;
    LEAVE(CUDA_SUCCESS);
}

enum { EVENT_NODE = 700 };

static CUresult run_node(struct fake_stream *s, CUgraphExec x, int i)
{
    struct node n = x->nodes[i];
    n.graph = x->id;
    n.number = i + 1;
    if (n.is_off || !strcmp(n.kind, "alloc"))
        return CUDA_SUCCESS;
    if (!strcmp(n.kind, "event") && n.event) {
        CUresult e = event_is(n.event);
        /* An event in a graph takes a time of its own. */
        if (!e)
            n.event->time = s->end = start_of(s) + EVENT_NODE;
        return e;
    }
    /* And so does the way from it to what comes behind it. */
    if (getenv("FAKE_CUDA_HOP") && x->of->original)
        s->end = start_of(s) + atol(getenv("FAKE_CUDA_HOP"));
    return put(s, n);
}

BOTH(cuGraphLaunch, _ptsz, flavour, (CUgraphExec x, CUstream h), {
    STREAM(h);
    if (!x || x->state != ALIVE)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (getenv("FAKE_CUDA_REFUSES_TWIN") && x->of->original)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    /* An executable does not run beside itself. */
    if (x->end > s->end)
        s->end = x->end;
    s->end = start_of(s);
    if (!s->capture)
        in_graph = s;
    char *done = calloc(1, x->count + 1);
    for (int left = x->count; left > 0 && !e;) {
        int before = left;
        for (int i = 0; i < x->count && !e; i++) {
            int ready = !done[i];
            for (int j = 0; ready && j < x->nodes[i].wait_count; j++)
                ready = done[x->nodes[i].waits[j]];
            if (ready) {
                e = run_node(s, x, i);
                done[i] = 1;
                left--;
            }
        }
        if (left == before)
            e = CUDA_ERROR_INVALID_VALUE; /* They wait for each other. */
    }
    free(done);
    in_graph = NULL;
    x->end = s->end;
    LEAVE(e);
})

static CUresult end_graph(CUgraph g)
{
    if (!g || g->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    g->state = DEAD;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph g) { ENTER(cuGraphDestroy); LEAVE(end_graph(g)); }
EXPORT CUresult cuGraphExecDestroy(CUgraphExec g) { ENTER(cuGraphExecDestroy); LEAVE(end_graph(g)); }
