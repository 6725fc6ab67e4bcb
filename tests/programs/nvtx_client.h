/* What NVTX's header does, for test programs: NVTX has no library, each program
 * has a copy of its header inside, which loads the tool that the environment names
 * and calls through the functions which that puts into its tables.
 *
 * With -DNVTX_REAL the real header is taken instead; both have the same functions.
 */
#ifndef HETRACE_TEST_NVTX_CLIENT_H
#define HETRACE_TEST_NVTX_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#ifdef NVTX_REAL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>
#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct domain *nvtxDomainHandle_t;
typedef struct text *nvtxStringHandle_t;
typedef struct resource *nvtxResourceHandle_t;
typedef struct sync_user *nvtxSyncUser_t;
typedef uint64_t nvtxRangeId_t;

enum { NVTX_VERSION = 3, NVTX_COLOR_ARGB = 1 };
enum { NVTX_MESSAGE_UNKNOWN, NVTX_MESSAGE_TYPE_ASCII, NVTX_MESSAGE_TYPE_UNICODE, NVTX_MESSAGE_TYPE_REGISTERED };
enum {
    NVTX_PAYLOAD_UNKNOWN,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
    NVTX_PAYLOAD_TYPE_INT64,
    NVTX_PAYLOAD_TYPE_DOUBLE,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
    NVTX_PAYLOAD_TYPE_INT32,
    NVTX_PAYLOAD_TYPE_FLOAT
};
enum { NVTX_RESOURCE_TYPE_GENERIC_POINTER = 0x10001 };

typedef union {
    const char *ascii;
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;

typedef struct {
    uint16_t version, size;
    int32_t identifierType;
    union {
        const void *pValue;
        uint64_t ullValue;
    } identifier;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxResourceAttributes_t;

typedef struct {
    uint16_t version, size;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxSyncUserAttributes_t;

/* ---- getting the functions --------------------------------------------------- */

enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULES };

/* One copy of the header: its functions, and where the tool finds them. Place 0
 * stands for no function, and a NULL for the end. */
struct nvtx_copy {
    void *functions[MODULES][17];
    void **places[MODULES][18];
};

static const unsigned nvtx_counts[MODULES] = {0, 16, 9, 15, 7, 16, 7};

/* The copy that is being handed to the tool by this thread. */
static __thread struct nvtx_copy *nvtx_handed;

static int nvtx_module(uint32_t module, void ****places, unsigned *count)
{
    if (module == 0 || module >= MODULES)
        return 0;
    *places = nvtx_handed->places[module];
    *count = nvtx_counts[module];
    return 1;
}

static const void *nvtx_export(uint32_t table)
{
    static const struct {
        size_t size;
        int (*module)(uint32_t, void ****, unsigned *);
    } callbacks = {sizeof callbacks, nvtx_module};
    return table == 1 ? &callbacks : NULL;
}

/* Loads the tool and gives it a copy. Returns whether there is one. */
static int nvtx_connect(struct nvtx_copy *copy)
{
    for (unsigned m = 1; m < MODULES; m++)
        for (unsigned i = 1; i < nvtx_counts[m]; i++)
            copy->places[m][i] = &copy->functions[m][i];
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*start)(const void *(*)(uint32_t)) = NULL;
    if (tool)
        *(void **)&start = dlsym(tool, "InitializeInjectionNvtx2");
    nvtx_handed = copy;
    return start && start(nvtx_export);
}

static struct nvtx_copy nvtx_own;
static pthread_once_t nvtx_once = PTHREAD_ONCE_INIT;

static void nvtx_connect_own(void)
{
    nvtx_connect(&nvtx_own);
}

static inline void *nvtx_function(unsigned module, unsigned number)
{
    pthread_once(&nvtx_once, nvtx_connect_own);
    return nvtx_own.functions[module][number];
}

/* ---- the functions ------------------------------------------------------------ */

#define NVTX_FUNCTION(module, number, result, none, name, params, args)                            \
    __attribute__((unused)) static result name params                                              \
    {                                                                                              \
        result(*function) params;                                                                  \
        *(void **)&function = nvtx_function(module, number);                                       \
        return function ? function args : none;                                                    \
    }
#define NVTX_VOID (void)0
#define ATTRIBUTES const nvtxEventAttributes_t *attributes

NVTX_FUNCTION(CORE, 1, void, NVTX_VOID, nvtxMarkEx, (ATTRIBUTES), (attributes))
NVTX_FUNCTION(CORE, 2, void, NVTX_VOID, nvtxMarkA, (const char *text), (text))
NVTX_FUNCTION(CORE, 3, void, NVTX_VOID, nvtxMarkW, (const wchar_t *text), (text))
NVTX_FUNCTION(CORE, 4, nvtxRangeId_t, 0, nvtxRangeStartEx, (ATTRIBUTES), (attributes))
NVTX_FUNCTION(CORE, 5, nvtxRangeId_t, 0, nvtxRangeStartA, (const char *text), (text))
NVTX_FUNCTION(CORE, 6, nvtxRangeId_t, 0, nvtxRangeStartW, (const wchar_t *text), (text))
NVTX_FUNCTION(CORE, 7, void, NVTX_VOID, nvtxRangeEnd, (nvtxRangeId_t id), (id))
NVTX_FUNCTION(CORE, 8, int, -2, nvtxRangePushEx, (ATTRIBUTES), (attributes))
NVTX_FUNCTION(CORE, 9, int, -2, nvtxRangePushA, (const char *text), (text))
NVTX_FUNCTION(CORE, 10, int, -2, nvtxRangePushW, (const wchar_t *text), (text))
NVTX_FUNCTION(CORE, 11, int, -2, nvtxRangePop, (void), ())
NVTX_FUNCTION(CORE, 12, void, NVTX_VOID, nvtxNameCategoryA, (uint32_t c, const char *text), (c, text))
NVTX_FUNCTION(CORE, 13, void, NVTX_VOID, nvtxNameCategoryW, (uint32_t c, const wchar_t *text), (c, text))
NVTX_FUNCTION(CORE, 14, void, NVTX_VOID, nvtxNameOsThreadA, (uint32_t t, const char *text), (t, text))
NVTX_FUNCTION(CORE, 15, void, NVTX_VOID, nvtxNameOsThreadW, (uint32_t t, const wchar_t *text), (t, text))

/* Objects of other APIs: A and W one after the other. */
#define NVTX_NAME(module, number, name, type)                                                      \
    NVTX_FUNCTION(module, number, void, NVTX_VOID, name##A, (type o, const char *text), (o, text))   \
    NVTX_FUNCTION(module, number + 1, void, NVTX_VOID, name##W, (type o, const wchar_t *text), (o, text))

NVTX_NAME(CUDA, 1, nvtxNameCuDevice, int)
NVTX_NAME(CUDA, 3, nvtxNameCuContext, void *)
NVTX_NAME(CUDA, 5, nvtxNameCuStream, void *)
NVTX_NAME(CUDA, 7, nvtxNameCuEvent, void *)
NVTX_NAME(CUDART, 1, nvtxNameCudaDevice, int)
NVTX_NAME(CUDART, 3, nvtxNameCudaStream, void *)
NVTX_NAME(CUDART, 5, nvtxNameCudaEvent, void *)
NVTX_NAME(OPENCL, 1, nvtxNameClDevice, void *)
NVTX_NAME(OPENCL, 3, nvtxNameClContext, void *)
NVTX_NAME(OPENCL, 5, nvtxNameClCommandQueue, void *)
NVTX_NAME(OPENCL, 7, nvtxNameClMemObject, void *)
NVTX_NAME(OPENCL, 9, nvtxNameClSampler, void *)
NVTX_NAME(OPENCL, 11, nvtxNameClProgram, void *)
NVTX_NAME(OPENCL, 13, nvtxNameClEvent, void *)

#define DOMAIN nvtxDomainHandle_t domain

NVTX_FUNCTION(CORE2, 1, void, NVTX_VOID, nvtxDomainMarkEx, (DOMAIN, ATTRIBUTES), (domain, attributes))
NVTX_FUNCTION(CORE2, 2, nvtxRangeId_t, 0, nvtxDomainRangeStartEx, (DOMAIN, ATTRIBUTES), (domain, attributes))
NVTX_FUNCTION(CORE2, 3, void, NVTX_VOID, nvtxDomainRangeEnd, (DOMAIN, nvtxRangeId_t id), (domain, id))
NVTX_FUNCTION(CORE2, 4, int, -2, nvtxDomainRangePushEx, (DOMAIN, ATTRIBUTES), (domain, attributes))
NVTX_FUNCTION(CORE2, 5, int, -2, nvtxDomainRangePop, (DOMAIN), (domain))
NVTX_FUNCTION(CORE2, 6, nvtxResourceHandle_t, NULL, nvtxDomainResourceCreate,
              (DOMAIN, nvtxResourceAttributes_t *attributes), (domain, attributes))
NVTX_FUNCTION(CORE2, 7, void, NVTX_VOID, nvtxDomainResourceDestroy, (nvtxResourceHandle_t r), (r))
NVTX_FUNCTION(CORE2, 8, void, NVTX_VOID, nvtxDomainNameCategoryA, (DOMAIN, uint32_t c, const char *text),
              (domain, c, text))
NVTX_FUNCTION(CORE2, 9, void, NVTX_VOID, nvtxDomainNameCategoryW, (DOMAIN, uint32_t c, const wchar_t *text),
              (domain, c, text))
NVTX_FUNCTION(CORE2, 10, nvtxStringHandle_t, NULL, nvtxDomainRegisterStringA, (DOMAIN, const char *text),
              (domain, text))
NVTX_FUNCTION(CORE2, 11, nvtxStringHandle_t, NULL, nvtxDomainRegisterStringW, (DOMAIN, const wchar_t *text),
              (domain, text))
NVTX_FUNCTION(CORE2, 12, nvtxDomainHandle_t, NULL, nvtxDomainCreateA, (const char *text), (text))
NVTX_FUNCTION(CORE2, 13, nvtxDomainHandle_t, NULL, nvtxDomainCreateW, (const wchar_t *text), (text))
NVTX_FUNCTION(CORE2, 14, void, NVTX_VOID, nvtxDomainDestroy, (DOMAIN), (domain))
NVTX_FUNCTION(CORE2, 15, void, NVTX_VOID, nvtxInitialize, (const void *reserved), (reserved))

NVTX_FUNCTION(SYNC, 1, nvtxSyncUser_t, NULL, nvtxDomainSyncUserCreate,
              (DOMAIN, const nvtxSyncUserAttributes_t *attributes), (domain, attributes))
NVTX_FUNCTION(SYNC, 2, void, NVTX_VOID, nvtxDomainSyncUserDestroy, (nvtxSyncUser_t u), (u))
NVTX_FUNCTION(SYNC, 3, void, NVTX_VOID, nvtxDomainSyncUserAcquireStart, (nvtxSyncUser_t u), (u))
NVTX_FUNCTION(SYNC, 4, void, NVTX_VOID, nvtxDomainSyncUserAcquireFailed, (nvtxSyncUser_t u), (u))
NVTX_FUNCTION(SYNC, 5, void, NVTX_VOID, nvtxDomainSyncUserAcquireSuccess, (nvtxSyncUser_t u), (u))
NVTX_FUNCTION(SYNC, 6, void, NVTX_VOID, nvtxDomainSyncUserReleasing, (nvtxSyncUser_t u), (u))

#endif
#endif
