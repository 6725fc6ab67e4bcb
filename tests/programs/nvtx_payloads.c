/* NVTX's extension for payloads with schemas, used as NCCL does: a range that is pushed with
 * attributes and popped with a payload, and ranges and marks with payloads of their own.
 * Without -DNVTX_REAL this does what the extension's header does.
 */
#include "nvtx_client.h"
#include <stdio.h>
#include <string.h>

#ifdef NVTX_REAL
#include <nvtx3/nvToolsExtPayload.h>
#else

typedef struct {
    uint64_t schemaId;
    size_t size;
    const void *payload;
} nvtxPayloadData_t;

typedef struct {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t arrayOrUnionDetail, offset;
    const void *semantics, *reserved;
} nvtxPayloadSchemaEntry_t;

typedef struct {
    uint64_t fieldMask;
    const char *name;
    uint64_t type, flags;
    const nvtxPayloadSchemaEntry_t *entries;
    size_t numEntries, payloadStaticSize, packAlign;
    uint64_t schemaId;
    void *extension;
} nvtxPayloadSchemaAttr_t;

typedef struct {
    const char *name;
    uint64_t value;
    int8_t isFlag;
} nvtxPayloadEnum_t;

typedef struct {
    uint64_t fieldMask;
    const char *name;
    const nvtxPayloadEnum_t *entries;
    size_t numEntries, sizeOfEnum;
    uint64_t schemaId;
    void *extension;
} nvtxPayloadEnumAttr_t;

enum {
    NVTX_PAYLOAD_ENTRY_TYPE_INT = 5,
    NVTX_PAYLOAD_ENTRY_TYPE_UINT64 = 18,
    NVTX_PAYLOAD_SCHEMA_TYPE_STATIC = 1,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME = 1 << 1,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE = 1 << 2,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES = 1 << 4,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES = 1 << 5,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE = 1 << 6,
    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID = 1 << 8,
    NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME = 1 << 1,
    NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES = 1 << 2,
    NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES = 1 << 3,
    NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE = 1 << 4
};

enum { PAYLOADS = 2, PLACES = 18 };
static intptr_t places[PLACES];
static pthread_once_t payload_once = PTHREAD_ONCE_INIT;

static void payload_connect(void)
{
    static const struct {
        size_t id, count;
        intptr_t *places;
    } segment = {0, PLACES, places};
    static const struct {
        uint16_t version, size, number, compatible;
        size_t count;
        const void *segments, *reserved;
    } module = {1, sizeof module, PAYLOADS, 1, 1, &segment, NULL};
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*start)(const void *) = NULL;
    if (tool)
        *(void **)&start = dlsym(tool, "InitializeInjectionNvtxExtension");
    if (start)
        start(&module);
}

#define EXTENSION(number, result, none, name, params, args)                                        \
    static result name params                                                                      \
    {                                                                                              \
        pthread_once(&payload_once, payload_connect);                                              \
        result(*f) params = (result(*) params)places[number];                                      \
        return f ? f args : none;                                                                  \
    }

EXTENSION(0, uint64_t, 0, nvtxPayloadSchemaRegister,
          (nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *about), (domain, about))
EXTENSION(1, uint64_t, 0, nvtxPayloadEnumRegister,
          (nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *about), (domain, about))
EXTENSION(2, void, (void)0, nvtxMarkPayload,
          (nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t count), (domain, data, count))
EXTENSION(3, int, -2, nvtxRangePushPayload,
          (nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t count), (domain, data, count))
EXTENSION(4, int, -2, nvtxRangePopPayload,
          (nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t count), (domain, data, count))
EXTENSION(5, nvtxRangeId_t, 0, nvtxRangeStartPayload,
          (nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t count), (domain, data, count))
EXTENSION(6, void, (void)0, nvtxRangeEndPayload,
          (nvtxDomainHandle_t domain, nvtxRangeId_t id, const nvtxPayloadData_t *data, size_t count),
          (domain, id, data, count))
#endif

struct about {
    uint64_t communicator;
    int ranks, rank;
};

int main(void)
{
    nvtxInitialize(NULL);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
    nvtxPayloadSchemaEntry_t entries[3];
    memset(entries, 0, sizeof entries);
    entries[0].type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
    entries[0].name = "communicator";
    entries[1].type = entries[2].type = NVTX_PAYLOAD_ENTRY_TYPE_INT;
    entries[1].name = "ranks";
    entries[1].offset = offsetof(struct about, ranks);
    entries[2].name = NULL;
    entries[2].offset = offsetof(struct about, rank);
    nvtxPayloadSchemaAttr_t schema;
    memset(&schema, 0, sizeof schema);
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    schema.name = "about";
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries;
    schema.numEntries = 3;
    schema.payloadStaticSize = sizeof(struct about);
    schema.schemaId = 77; /* Does not count without its bit. */
    uint64_t first = nvtxPayloadSchemaRegister(domain, &schema);
    schema.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    schema.schemaId = (1 << 24) + 5;
    uint64_t second = nvtxPayloadSchemaRegister(domain, &schema);
    nvtxPayloadEnum_t values[2] = {{"Sum", 0, 0}, {"Max", 2, 0}};
    nvtxPayloadEnumAttr_t operation;
    memset(&operation, 0, sizeof operation);
    operation.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
    operation.name = "operation";
    operation.entries = values;
    operation.numEntries = 2;
    operation.sizeOfEnum = 4;
    nvtxPayloadEnumRegister(domain, &operation);
    int traced = getenv("NVTX_INJECTION64_PATH") != NULL;
    printf("schemas %d %d\n", traced ? first != 77 && first != 0 : 1, traced ? second == (1 << 24) + 5 : 1);

    struct about about = {0x1122334455667788, 2, 1};
    nvtxPayloadData_t data = {second, sizeof about, &about};
    nvtxEventAttributes_t a;
    memset(&a, 0, sizeof a);
    a.version = NVTX_VERSION;
    a.size = sizeof a;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = "init";
    int levels[4];
    levels[0] = nvtxDomainRangePushEx(domain, &a);
    levels[1] = nvtxRangePopPayload(domain, &data, 1);
    a.message.ascii = "after";
    levels[2] = nvtxDomainRangePushEx(domain, &a);
    levels[3] = nvtxDomainRangePop(domain);
    printf("levels %d\n", traced ? levels[0] == 0 && levels[1] == 0 && levels[2] == 0 && levels[3] == 0 : 1);
    nvtxRangePushPayload(domain, &data, 1);
    nvtxRangePopPayload(domain, NULL, 0);
    nvtxRangeId_t id = nvtxRangeStartPayload(domain, &data, 1);
    nvtxRangeEndPayload(domain, id, NULL, 0);
    nvtxMarkPayload(domain, &data, 1);
    data.size = SIZE_MAX; /* The tool should know; it does not. */
    nvtxMarkPayload(domain, &data, 1);
    return 0;
}
