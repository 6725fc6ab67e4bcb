/* Counts what a device did, through CUPTI alone and independent of hetrace:
 *
 *   COUNT_OUT=file COUNT_KINDS=all|kernel|launches|none LD_PRELOAD=./libcount.so app
 *
 * Each process writes a JSON line at its end: kernels, copies and bytes by kind, memsets,
 * kernels by name, and their nanoseconds. With `kernel` only kernels are asked for: what CUPTI itself costs. With
 * `launches` CUPTI also calls back at each launch, for nothing: who wants to know which call
 * a kernel came from needs that.
 */
#define _GNU_SOURCE
#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER (4 << 20)
#define NAMES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long kernels, memsets, copies[16], bytes[16], dropped, graph_kernels;
static struct { char *name; unsigned long count, ns; } names[NAMES];

static void name_it(const char *name, unsigned long ns) {
    unsigned hash = 5381;
    for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned at = (hash + i) % NAMES;
        if (!names[at].name) names[at].name = strdup(name);
        if (!strcmp(names[at].name, name)) {
            names[at].count++;
            names[at].ns += ns;
            return;
        }
    }
}

static void finish(void);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t owner;

/* Handlers run in reverse: this one, that comes after the driver's own, runs before them. */
static void at_end(void) { atexit(finish); }

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
    pthread_once(&once, at_end);
    *buffer = aligned_alloc(8, BUFFER);
    *size = BUFFER;
    *records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)size;
    pthread_mutex_lock(&lock);
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            CUpti_ActivityKernel9 *kernel = (CUpti_ActivityKernel9 *)record;
            kernels++;
            graph_kernels += kernel->graphNodeId != 0;
            name_it(kernel->name, kernel->end - kernel->start);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            CUpti_ActivityMemcpy5 *copy = (CUpti_ActivityMemcpy5 *)record;
            copies[copy->copyKind & 15]++;
            bytes[copy->copyKind & 15] += copy->bytes;
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY2: {
            CUpti_ActivityMemcpyPtoP4 *copy = (CUpti_ActivityMemcpyPtoP4 *)record;
            copies[10]++;
            bytes[10] += copy->bytes;
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: memsets++; break;
        default: break;
        }
    }
    size_t lost = 0;
    cuptiActivityGetNumDroppedRecords(context, stream, &lost);
    dropped += lost;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void finish(void) {
    if (owner != getpid()) return; /* A child has no counts of its own. */
    owner = 0;
    cuptiActivityFlushAll(1);
    const char *path = getenv("COUNT_OUT");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out) return;
    char *line = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&line, &length);
    fprintf(text, "{\"pid\": %d, \"kernels\": %lu, \"graph_kernels\": %lu, \"memsets\": %lu, \"dropped\": %lu, \"copies\": {",
            getpid(), kernels, graph_kernels, memsets, dropped);
    const char *comma = "";
    for (int i = 0; i < 16; i++)
        if (copies[i]) fprintf(text, "%s\"%d\": [%lu, %lu]", comma, i, copies[i], bytes[i]), comma = ", ";
    fprintf(text, "}, \"names\": {");
    comma = "";
    for (int i = 0; i < NAMES; i++)
        if (names[i].name) fprintf(text, "%s\"%s\": %lu", comma, names[i].name, names[i].count), comma = ", ";
    fprintf(text, "}, \"ns\": {");
    comma = "";
    for (int i = 0; i < NAMES; i++)
        if (names[i].name) fprintf(text, "%s\"%s\": %lu", comma, names[i].name, names[i].ns), comma = ", ";
    fprintf(text, "}}\n");
    fclose(text);
    fwrite(line, 1, length, out);
    fclose(out);
}

static void CUPTIAPI called(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
    (void)data, (void)domain, (void)id, (void)info;
}

static void call_back(void) {
    const CUpti_CallbackId launches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                         CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                         CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz};
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, called, NULL) != CUPTI_SUCCESS) return;
    for (unsigned i = 0; i < sizeof launches / sizeof *launches; i++)
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]);
}

__attribute__((constructor)) static void begin(void) {
    const char *kinds = getenv("COUNT_KINDS");
    if (kinds && !strcmp(kinds, "none")) return;
    owner = getpid();
    if (cuptiActivityRegisterCallbacks(requested, completed) != CUPTI_SUCCESS) return;
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (kinds && !strcmp(kinds, "launches")) {
        call_back();
    } else if (!kinds || strcmp(kinds, "kernel")) {
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    }
    atexit(finish);
}
