/* nvJitLink, as far as programs have to do with it whose code is machine code. What it links of is PTX, or LTO-IR that is PTX
 * behind four bytes; what it makes of that is an ELF file with nothing of it but a hash, and a section for each of two kernels,
 * k1000 and k2000. As the real one, it has PTX of links of LTO-IR only, if it was asked for that in place of machine code. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvJitLink {
    int lto, ptx, other, inputs, complete;
    uint64_t hash;
    char *text;
} *nvJitLinkHandle;

enum { PTX = 2, LTOIR = 3, INVALID = 3, INCOMPATIBLE = 11, LTO_NOT_ENABLED = 18 };

static const char NAMES[] = "\0.nv.constant0.k1000\0.nv.constant0.k2000";
static const char LOG[] = "ERROR: -ptx requires that all inputs have LTOIR\nmore\n";

enum { TABLE = 64, HEADERS = 4, DATA = TABLE + 64 * HEADERS, CUBIN = DATA + 8 + sizeof NAMES };

static int make(nvJitLinkHandle *handle, uint32_t count, const char *const *options)
{
    nvJitLinkHandle link = calloc(1, sizeof *link);
    link->hash = 14695981039346656037u;
    for (uint32_t i = 0; i < count; i++) {
        link->lto |= !strcmp(options[i], "-lto");
        link->ptx |= !strcmp(options[i], "-ptx");
    }
    *handle = link;
    return 0;
}

static int end(nvJitLinkHandle *handle)
{
    free((*handle)->text);
    free(*handle);
    *handle = NULL;
    return 0;
}

static int add(nvJitLinkHandle link, int kind, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    if (kind == LTOIR && !link->lto)
        return LTO_NOT_ENABLED;
    for (size_t i = 0; i < size; i++)
        link->hash = (link->hash ^ bytes[i]) * 1099511628211u;
    link->inputs++;
    if (kind != LTOIR)
        link->other = 1;
    else if (!link->text && size > 4)
        link->text = strndup((const char *)data + 4, size - 4);
    return 0;
}

static int add_file(nvJitLinkHandle link, int kind, const char *path)
{
    static char bytes[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f)
        return INVALID;
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return add(link, kind, bytes, size);
}

static int complete(nvJitLinkHandle link)
{
    if (link->ptx && (link->other || !link->text))
        return INCOMPATIBLE;
    link->complete = 1;
    return 0;
}

static int cubin_size(nvJitLinkHandle link, size_t *size)
{
    *size = CUBIN;
    return link->complete && !link->ptx ? 0 : INVALID;
}

static int cubin(nvJitLinkHandle link, char *code)
{
    uint64_t table = TABLE, data = DATA, size = 8, names = DATA + 8, length = sizeof NAMES;
    uint32_t first = 1, second = 21, one = 1, three = 3;
    if (!link->complete || link->ptx)
        return INVALID;
    memset(code, 0, CUBIN);
    memcpy(code, "\177ELF\2\1", 6);
    memcpy(code + 0x28, &table, 8);
    memcpy(code + 0x3a, (uint16_t[]){64, HEADERS, 3}, 6);
    memcpy(code + TABLE, &first, 4), memcpy(code + TABLE + 4, &one, 4);
    memcpy(code + TABLE + 0x18, &data, 8), memcpy(code + TABLE + 0x20, &size, 8);
    memcpy(code + TABLE + 64, &second, 4), memcpy(code + TABLE + 64 + 4, &one, 4);
    memcpy(code + TABLE + 64 + 0x18, &data, 8), memcpy(code + TABLE + 64 + 0x20, &size, 8);
    memcpy(code + TABLE + 192 + 4, &three, 4);
    memcpy(code + TABLE + 192 + 0x18, &names, 8), memcpy(code + TABLE + 192 + 0x20, &length, 8);
    memcpy(code + DATA, &link->hash, 8);
    memcpy(code + DATA + 8, NAMES, sizeof NAMES);
    return 0;
}

static int ptx_size(nvJitLinkHandle link, size_t *size)
{
    *size = link->text ? strlen(link->text) + 1 : 0;
    return link->complete && link->ptx ? 0 : INVALID;
}

static int ptx(nvJitLinkHandle link, char *text)
{
    if (!link->complete || !link->ptx)
        return INVALID;
    strcpy(text, link->text);
    return 0;
}

static int log_size(nvJitLinkHandle link, size_t *size)
{
    (void)link;
    *size = sizeof LOG;
    return 0;
}

static int log_of(nvJitLinkHandle link, char *text)
{
    (void)link;
    memcpy(text, LOG, sizeof LOG);
    return 0;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    *major = 13, *minor = 0;
    return 0;
}

/* One name, and the same for a version of the header. */
#define BOTH(name, call, ...)                                                                                                      \
    int nvJitLink##name(__VA_ARGS__) { return call; }                                                                              \
    int __nvJitLink##name##_13_0(__VA_ARGS__) { return call; }

BOTH(Create, make(handle, count, options), nvJitLinkHandle *handle, uint32_t count, const char *const *options)
BOTH(Destroy, end(handle), nvJitLinkHandle *handle)
BOTH(AddData, add(link, kind, data, size), nvJitLinkHandle link, int kind, const void *data, size_t size, const char *name)
BOTH(AddFile, add_file(link, kind, path), nvJitLinkHandle link, int kind, const char *path)
BOTH(Complete, complete(link), nvJitLinkHandle link)
BOTH(GetLinkedCubinSize, cubin_size(link, size), nvJitLinkHandle link, size_t *size)
BOTH(GetLinkedCubin, cubin(link, code), nvJitLinkHandle link, char *code)
BOTH(GetLinkedPtxSize, ptx_size(link, size), nvJitLinkHandle link, size_t *size)
BOTH(GetLinkedPtx, ptx(link, text), nvJitLinkHandle link, char *text)
BOTH(GetErrorLogSize, log_size(link, size), nvJitLinkHandle link, size_t *size)
BOTH(GetErrorLog, log_of(link, text), nvJitLinkHandle link, char *text)
