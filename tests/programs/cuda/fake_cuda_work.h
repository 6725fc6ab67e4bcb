/* Part of fake_cuda.c: streams, events, what is put into streams, captures. */

/* Defines a function and its variant for the per-thread default stream. */
#define BOTH(name, suffix, flavour_is, params, body)                                               \
    EXPORT CUresult name params { enum { flavour_is = 0 }; ENTER(name); body }                      \
    EXPORT CUresult name##suffix params { enum { flavour_is = 1 }; ENTER(name##suffix); body }

#define STREAM(handle)                                                                             \
    struct fake_stream *s = NULL;                                                                  \
    CUresult e = stream_of(handle, flavour, &s);                                                   \
    if (e)                                                                                         \
        LEAVE(e)

static CUresult new_stream(CUstream *out, unsigned flags, int priority)
{
    struct fake_ctx *c = current();
    CUresult e = check(c);
    if (e)
        return e;
    struct fake_stream *s = calloc(1, sizeof *s);
    *s = (struct fake_stream){.state = ALIVE, .ctx = c, .id = next_id++, .flags = flags,
                              .priority = priority, .next = c->streams};
    *out = c->streams = s;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *s, unsigned f) { ENTER(cuStreamCreate); LEAVE(new_stream(s, f, 0)); }
EXPORT CUresult cuStreamCreateWithPriority(CUstream *s, unsigned f, int p)
{ ENTER(cuStreamCreateWithPriority); LEAVE(new_stream(s, f, p)); }

/* What is in it goes on; a capture is over. */
static CUresult end_stream(CUstream s)
{
    if (!s || s->state != ALIVE)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->end > s->ctx->legacy.end)
        s->ctx->legacy.end = s->end;
    s->state = DEAD;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy(CUstream s) { ENTER(cuStreamDestroy); LEAVE(end_stream(s)); }
EXPORT CUresult cuStreamDestroy_v2(CUstream s) { ENTER(cuStreamDestroy_v2); LEAVE(end_stream(s)); }

BOTH(cuStreamGetCtx, _ptsz, flavour, (CUstream h, CUcontext *out), { STREAM(h); *out = s->ctx; LEAVE(e); })
BOTH(cuStreamGetId, _ptsz, flavour, (CUstream h, unsigned long long *out), {
    STREAM(h);
    if (is_old())
        LEAVE(CUDA_ERROR_NOT_FOUND);
    *out = s->id;
    LEAVE(e);
})
BOTH(cuStreamGetFlags, _ptsz, flavour, (CUstream h, unsigned *out), { STREAM(h); *out = s->flags; LEAVE(e); })
BOTH(cuStreamGetPriority, _ptsz, flavour, (CUstream h, int *out), { STREAM(h); *out = s->priority; LEAVE(e); })

BOTH(cuStreamSynchronize, _ptsz, flavour, (CUstream h), {
    STREAM(h);
    if (s->capture) {
        s->capture->invalid = 1;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if ((e = unsafe_call()))
        LEAVE(e);
    wait_until(s->ctx->device, s->end);
    LEAVE(check(s->ctx));
})

BOTH(cuStreamQuery, _ptsz, flavour, (CUstream h), {
    STREAM(h);
    if ((e = unsafe_call()))
        LEAVE(e);
    LEAVE(device_now(s->ctx->device) >= s->end ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
})

/* ---- Events */

static CUresult event_is(CUevent e)
{
    if (owner != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!e || e->state != ALIVE) {
        misuses[2]++;
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return check(e->ctx);
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER(cuEventCreate);
    struct fake_ctx *c = current();
    CUresult e = check(c);
    if (e)
        LEAVE(e);
    struct fake_event *event = calloc(1, sizeof *event);
    *event = (struct fake_event){.state = ALIVE, .ctx = c, .flags = flags, .next = events};
    *out = events = event;
    LEAVE(CUDA_SUCCESS);
}

static CUresult end_event(CUevent event)
{
    CUresult e = event_is(event);
    if (e == CUDA_SUCCESS)
        event->state = DEAD;
    return e;
}

EXPORT CUresult cuEventDestroy(CUevent e) { ENTER(cuEventDestroy); LEAVE(end_event(e)); }
EXPORT CUresult cuEventDestroy_v2(CUevent e) { ENTER(cuEventDestroy_v2); LEAVE(end_event(e)); }

BOTH(cuEventRecord, _ptsz, flavour, (CUevent event, CUstream h), {
    STREAM(h);
    if ((e = event_is(event)))
        LEAVE(e);
    if (event->ctx != s->ctx)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    struct fake_graph *other = meddled(s);
    if (other) {
        other->invalid = 1;
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (s->capture)
        LEAVE(put(s, (struct node){.kind = "event", .event = event}));
    event->time = start_of(s);
    LEAVE(CUDA_SUCCESS);
})

EXPORT CUresult cuEventQuery(CUevent event)
{
    ENTER(cuEventQuery);
    CUresult e = event_is(event);
    if (e || (e = unsafe_call()))
        LEAVE(e);
    LEAVE(device_now(event->ctx->device) >= event->time ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    ENTER(cuEventSynchronize);
    CUresult e = event_is(event);
    if (e || (e = unsafe_call()))
        LEAVE(e);
    wait_until(event->ctx->device, event->time);
    LEAVE(check(event->ctx));
}

/* Milliseconds in 24 bits, and in steps of 32 ns, as the real ones. */
static CUresult elapsed(float *out, CUevent a, CUevent b)
{
    CUresult e = event_is(a);
    if (e || (e = event_is(b)))
        return e;
    if (a->ctx != b->ctx || !a->time || !b->time || (a->flags & 2) || (b->flags & 2))
        return CUDA_ERROR_INVALID_HANDLE;
    int64_t now = device_now(a->ctx->device);
    if (now < a->time || now < b->time)
        return CUDA_ERROR_NOT_READY;
    *out = (float)((double)(b->time / 32 * 32 - a->time / 32 * 32) / 1e6);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { ENTER(cuEventElapsedTime); LEAVE(elapsed(ms, a, b)); }
EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b) { ENTER(cuEventElapsedTime_v2); LEAVE(elapsed(ms, a, b)); }

BOTH(cuStreamWaitEvent, _ptsz, flavour, (CUstream h, CUevent event, unsigned flags), {
    (void)flags;
    STREAM(h);
    if ((e = event_is(event)))
        LEAVE(e);
    if (event->time > s->end)
        s->end = event->time;
    LEAVE(CUDA_SUCCESS);
})

/* ---- Launches */

#define LAUNCH(f, x, y, z, a, b, c, dynamic)                                                               \
    if (!(f) || (f)->state != ALIVE)                                                               \
        LEAVE(CUDA_ERROR_INVALID_HANDLE);                                                          \
    if ((uint64_t)(a) * (b) * (c) > 1024 || !(x) || !(y) || !(z))                                 \
        LEAVE(CUDA_ERROR_INVALID_VALUE);                                                           \
    /* More than 48 KiB have to be asked for. */                                                    \
    if ((dynamic) > 49152 && (int)(dynamic) > (f)->most_shared)                                         \
        LEAVE(CUDA_ERROR_INVALID_VALUE);                                                           \
    if (getenv("FAKE_CUDA_REFUSES_LAUNCH") && strstr((f)->name, getenv("FAKE_CUDA_REFUSES_LAUNCH")))  \
        LEAVE(701); /* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES */                                        \
    LEAVE(put(s, (struct node){.kind = "kernel", .function = f, .grid = {x, y, z},                    \
                               .block = {a, b, c}, .shared = dynamic}))

BOTH(cuLaunchKernel, _ptsz, flavour,
     (CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c,
      unsigned shared, CUstream h, void **params, void **extra), {
    (void)params; (void)extra;
    STREAM(h);
    LAUNCH(f, x, y, z, a, b, c, shared);
})

BOTH(cuLaunchCooperativeKernel, _ptsz, flavour,
     (CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c,
      unsigned shared, CUstream h, void **params), {
    (void)params;
    STREAM(h);
    LAUNCH(f, x, y, z, a, b, c, shared);
})

BOTH(cuLaunchKernelEx, _ptsz, flavour,
     (const CUlaunchConfig *l, CUfunction f, void **params, void **extra), {
    (void)params; (void)extra;
    STREAM(l->hStream);
    LAUNCH(f, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX, l->blockDimY, l->blockDimZ,
           l->sharedMemBytes);
})

BOTH(cuLaunchHostFunc, _ptsz, flavour, (CUstream h, CUhostFn f, void *data), {
    STREAM(h);
    e = put(s, (struct node){.kind = "host"});
    int now = !e && !s->capture;
    pthread_mutex_unlock(&lock);
    cupti_ends();
    if (now) {
        in_callback = 1;
        f(data);
        in_callback = 0;
    }
    return e;
})

/* ---- Copies and fills. They are done at once; only their time is simulated. */

/* CUPTI's kinds of memory: 1 pageable, 2 pinned, 3 device, 5 managed. */
static int memory_of(uint64_t at)
{
    for (struct memory *m = memories; m; m = m->next)
        if ((char *)at >= m->at && (char *)at < m->at + m->bytes)
            return (int[]){0, 2, 3, 5}[m->kind];
    return 1;
}

#define MOVE(what, d, f, n, wait)                                                                  \
    STREAM(h);                                                                                     \
    if (wait && ((s->capture && (s->capture->invalid = 1)) || unsafe_call()))                      \
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);                                              \
    e = put(s, (struct node){.kind = what, .bytes = n, .from = memory_of((uint64_t)(f)),        \
                             .to = memory_of((uint64_t)(d)), .source = (uint64_t)(f),             \
                             .target = (uint64_t)(d)});                                           \
    if (!e && !s->capture)                                                                         \
        memmove((void *)(d), (const void *)(f), n);                                                \
    if (!e && wait)                                                                                \
        wait_until(s->ctx->device, s->end);                                                        \
    LEAVE(e)

#define NO_STREAM CUstream h = NULL
BOTH(cuMemcpy, _ptds, flavour, (CUdeviceptr d, CUdeviceptr f, size_t n), { NO_STREAM; MOVE("copy", d, f, n, 1); })
BOTH(cuMemcpyHtoD_v2, _ptds, flavour, (CUdeviceptr d, const void *f, size_t n), { NO_STREAM; MOVE("write", d, f, n, 1); })
BOTH(cuMemcpyDtoH_v2, _ptds, flavour, (void *d, CUdeviceptr f, size_t n), { NO_STREAM; MOVE("read", d, f, n, 1); })
BOTH(cuMemcpyDtoD_v2, _ptds, flavour, (CUdeviceptr d, CUdeviceptr f, size_t n), { NO_STREAM; MOVE("copy", d, f, n, 1); })
BOTH(cuMemcpyAsync, _ptsz, flavour, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream h), { MOVE("copy", d, f, n, 0); })
BOTH(cuMemcpyHtoDAsync_v2, _ptsz, flavour, (CUdeviceptr d, const void *f, size_t n, CUstream h), { MOVE("write", d, f, n, 0); })
BOTH(cuMemcpyDtoHAsync_v2, _ptsz, flavour, (void *d, CUdeviceptr f, size_t n, CUstream h), { MOVE("read", d, f, n, 0); })
BOTH(cuMemcpyDtoDAsync_v2, _ptsz, flavour, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream h), { MOVE("copy", d, f, n, 0); })

#define FILL(type, d, value, n)                                                                    \
    STREAM(h);                                                                                     \
    e = put(s, (struct node){.kind = "fill", .bytes = (n) * sizeof(type),                          \
                             .to = memory_of((uint64_t)(d)), .target = (uint64_t)(d)});            \
    for (size_t i = 0; !e && !s->capture && i < (n); i++)                                          \
        ((type *)(d))[i] = value;                                                                  \
    LEAVE(e)

BOTH(cuMemsetD8_v2, _ptds, flavour, (CUdeviceptr d, unsigned char v, size_t n), { NO_STREAM; FILL(unsigned char, d, v, n); })
BOTH(cuMemsetD32_v2, _ptds, flavour, (CUdeviceptr d, unsigned v, size_t n), { NO_STREAM; FILL(unsigned, d, v, n); })
BOTH(cuMemsetD8Async, _ptsz, flavour, (CUdeviceptr d, unsigned char v, size_t n, CUstream h), { FILL(unsigned char, d, v, n); })
BOTH(cuMemsetD32Async, _ptsz, flavour, (CUdeviceptr d, unsigned v, size_t n, CUstream h), { FILL(unsigned, d, v, n); })

/* ---- Captures */

static CUresult begin_capture(struct fake_stream *s, int mode)
{
    if (is_legacy(s) || s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    s->capture = calloc(1, sizeof *s->capture);
    s->capture->state = ALIVE;
    s->capture->origin = s;
    s->capture->mode = mode;
    s->capture->id = next_id++;
    captures += mode == 0;
    return CUDA_SUCCESS;
}

BOTH(cuStreamBeginCapture, _ptsz, flavour, (CUstream h), { STREAM(h); LEAVE(begin_capture(s, 0)); })
BOTH(cuStreamBeginCapture_v2, _ptsz, flavour, (CUstream h, int mode), { STREAM(h); LEAVE(begin_capture(s, mode)); })

BOTH(cuStreamEndCapture, _ptsz, flavour, (CUstream h, CUgraph *out), {
    STREAM(h);
    struct fake_graph *g = s->capture;
    if (!g)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    s->capture = NULL;
    captures -= g->mode == 0;
    *out = g->invalid ? NULL : g;
    LEAVE(g->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
})

BOTH(cuStreamIsCapturing, _ptsz, flavour, (CUstream h, int *out), {
    STREAM(h);
    if (meddled(s))
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *out = !s->capture ? 0 : s->capture->invalid ? 2 : 1;
    LEAVE(CUDA_SUCCESS);
})

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    CALLED(cuThreadExchangeStreamCaptureMode);
    int old = relaxed;
    relaxed = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
