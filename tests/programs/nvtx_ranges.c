/* Marks, ranges and names of NVTX.
 *
 *   nvtx_ranges           everything once, each answer on a line of its own
 *   nvtx_ranges copies    eight threads, each with its own copy of the header
 *   nvtx_ranges fork      ranges before a fork, in the child, and after it
 *   nvtx_ranges loop N    N pushes and pops; says how long one takes
 *
 * Without a tool everything returns 0, NULL or -2.
 */
#include "nvtx_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static nvtxEventAttributes_t text(const char *message)
{
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = sizeof a;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = message;
    return a;
}

static void show(const char *what, long long answer)
{
    printf("%s %lld\n", what, answer);
}

/* ---- everything ---------------------------------------------------------------- */

static nvtxDomainHandle_t domain;
static nvtxRangeId_t across;

static void payloads(void)
{
    /* What lies beside a small member must not be taken for a part of it. */
#define MARK(name, kind, member, value)                                                            \
    do {                                                                                           \
        nvtxEventAttributes_t a = text(name);                                                      \
        a.payload.ullValue = 0xeeeeeeeeeeeeeeee;                                                   \
        a.payloadType = NVTX_PAYLOAD_TYPE_##kind;                                                  \
        a.payload.member = value;                                                                  \
        nvtxMarkEx(&a);                                                                            \
    } while (0)
    MARK("u64", UNSIGNED_INT64, ullValue, 0xfedcba9876543210);
    MARK("i64", INT64, llValue, -5);
    MARK("f64", DOUBLE, dValue, 0.1);
    MARK("u32", UNSIGNED_INT32, uiValue, 4000000000u);
    MARK("i32", INT32, iValue, -7);
    MARK("f32", FLOAT, fValue, 1.5f);
}

static void attributes(void)
{
    nvtxEventAttributes_t a = text("colour and category");
    a.category = 2;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff00aa00;
    nvtxDomainMarkEx(domain, &a);

    /* Filled in by a program that knows less of the struct. */
    a.size = 16;
    nvtxDomainMarkEx(domain, &a);

    a = text(NULL);
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"Gr\u00f6\u00dfe \u20ac \U0001f600";
    nvtxDomainMarkEx(domain, &a);

    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainMarkEx(domain, &a);
    a.message.registered = nvtxDomainRegisterStringW(domain, L"\u00e9");
    nvtxDomainMarkEx(domain, &a);

    nvtxMarkA(NULL);
    nvtxMarkA("plain");
    nvtxMarkW(L"\u00fcber");
}

static void *other_thread(void *unused)
{
    (void)unused;
    nvtxEventAttributes_t a = text("other, in the domain");
    show("other push", nvtxRangePushA("other"));
    show("other domain push", nvtxDomainRangePushEx(domain, &a));
    show("other push", nvtxRangePushW(L"\u00f6ther"));
    show("other pop", nvtxRangePop());
    show("other pop", nvtxRangePop());
    show("other pop of nothing", nvtxRangePop());
    show("other domain pop", nvtxDomainRangePop(domain));
    nvtxRangeEnd(across);
    return NULL;
}

static void everything(void)
{
    nvtxInitialize(NULL);
    domain = nvtxDomainCreateA("app.io");
    nvtxDomainHandle_t wide = nvtxDomainCreateW(L"Gr\u00f6\u00dfe");
    show("domains differ", domain && wide ? domain != wide : -1);
    nvtxNameCategoryA(1, "setup");
    nvtxDomainNameCategoryA(domain, 2, "files");
    nvtxDomainNameCategoryW(wide, 2, L"G\u00fcter");
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main");
    payloads();
    attributes();

    nvtxEventAttributes_t a = text("inner");
    show("push", nvtxRangePushA("outer"));
    show("push", nvtxRangePushEx(&a));
    across = nvtxRangeStartA("across threads");
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    show("pop", nvtxRangePop());
    show("pop", nvtxRangePop());
    show("pop of nothing", nvtxRangePop());
    show("domain pop of nothing", nvtxDomainRangePop(domain));

    nvtxRangeId_t id = nvtxRangeStartW(L"\u00fcberlappt");
    a = text("in the domain");
    nvtxRangeId_t second = nvtxDomainRangeStartEx(domain, &a);
    show("ids differ", id && second && across ? id != second && id != across : -1);
    nvtxRangeEnd(id);
    nvtxDomainRangeEnd(domain, second);

    nvtxResourceAttributes_t r = {0};
    r.version = NVTX_VERSION;
    r.size = sizeof r;
    r.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    r.identifier.ullValue = 0x1234;
    r.messageType = NVTX_MESSAGE_TYPE_ASCII;
    r.message.ascii = "a lock";
    nvtxResourceHandle_t resource = nvtxDomainResourceCreate(domain, &r);
    show("resource", resource != NULL);
    nvtxDomainResourceDestroy(resource);

    nvtxSyncUserAttributes_t u = {0};
    u.version = NVTX_VERSION;
    u.size = sizeof u;
    u.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    u.message.unicode = L"Schlo\u00df";
    nvtxSyncUser_t user = nvtxDomainSyncUserCreate(domain, &u);
    show("user", user != NULL);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireFailed(user);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireSuccess(user);
    nvtxDomainSyncUserReleasing(user);
    nvtxDomainSyncUserDestroy(user);

#ifndef NVTX_REAL
    void *object = (void *)0xabc0;
    nvtxNameCuDeviceA(1, "cu device");
    nvtxNameCuContextA(object, "cu context");
    nvtxNameCuStreamA(object, "cu stream");
    nvtxNameCuEventW(object, L"cu event");
    nvtxNameCudaDeviceW(2, L"cuda device");
    nvtxNameCudaStreamA(object, "cuda stream");
    nvtxNameCudaEventA(object, "cuda event");
    nvtxNameClDeviceA(object, "cl device");
    nvtxNameClContextA(object, "cl context");
    nvtxNameClCommandQueueW(object, L"cl queue");
    nvtxNameClMemObjectA(object, "cl mem");
    nvtxNameClSamplerA(object, "cl sampler");
    nvtxNameClProgramA(object, "cl program");
    nvtxNameClEventW(object, L"cl event");
#endif
    nvtxDomainDestroy(wide);

    nvtxRangePushA("left open");
    nvtxRangeStartA("never ended");
}

/* ---- the header, many times ------------------------------------------------------ */

#ifndef NVTX_REAL
static void *with_copy(void *number)
{
    static struct nvtx_copy copies[8];
    struct nvtx_copy *copy = &copies[(intptr_t)number];
    if (!nvtx_connect(copy))
        return NULL;
    int (*push)(const char *);
    int (*pop)(void);
    *(void **)&push = copy->functions[CORE][9];
    *(void **)&pop = copy->functions[CORE][11];
    int right = 1;
    for (int i = 0; i < 100; i++)
        right &= push("copy") == i;
    for (int i = 100; i-- > 0;)
        right &= pop() == i;
    return (void *)(intptr_t)right;
}

static void copies(void)
{
    pthread_t threads[8];
    long right = 0;
    for (intptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, with_copy, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        right += (intptr_t)answer;
    }
    show("right", right);
}
#endif

/* ---- fork -------------------------------------------------------------------------- */

static void forked(void)
{
    show("push", nvtxRangePushA("before"));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        show("child push", nvtxRangePushA("child"));
        show("child pop", nvtxRangePop());
        show("child pop", nvtxRangePop());
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    show("pop", nvtxRangePop());
}

/* ---- cost ---------------------------------------------------------------------------- */

static void loop(long times)
{
    struct timespec from, to;
    nvtxEventAttributes_t a = text("loop");
    nvtxRangePushEx(&a);
    nvtxRangePop();
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < times; i++) {
        nvtxRangePushEx(&a);
        nvtxRangePop();
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("%.1f ns per push and pop\n", ns / (double)times);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "loop"))
        loop(atol(argv[2]));
    else if (!strcmp(mode, "fork"))
        forked();
#ifndef NVTX_REAL
    else if (!strcmp(mode, "copies"))
        copies();
#endif
    else
        everything();
    return 0;
}
