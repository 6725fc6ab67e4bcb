/* NVRTC, as far as programs have to do with it whose code is machine code: its compiler takes PTX for source. What it makes of
 * that is an ELF file with nothing of it but a hash. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
    char *source;
    int compiled;
} *nvrtcProgram;

enum { CUBIN = 136 };

int nvrtcVersion(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return 0;
}

const char *nvrtcGetErrorString(int error)
{
    return error ? "NVRTC_ERROR_OF_A_FAKE" : "NVRTC_SUCCESS";
}

int nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names)
{
    (void)name, (void)count, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    return 0;
}

int nvrtcDestroyProgram(nvrtcProgram *program)
{
    free((*program)->source);
    free(*program);
    *program = NULL;
    return 0;
}

int nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    (void)count, (void)options;
    program->compiled = !strstr(program->source, "an error");
    return program->compiled ? 0 : 6;
}

int nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->source) + 1;
    return program->compiled ? 0 : 4;
}

int nvrtcGetPTX(nvrtcProgram program, char *text)
{
    strcpy(text, program->source);
    return 0;
}

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = CUBIN;
    return program->compiled ? 0 : 4;
}

int nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    uint64_t hash = 14695981039346656037u, offset = 64, data = 128, size = 8;
    for (const char *at = program->source; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    memset(cubin, 0, CUBIN);
    memcpy(cubin, "\177ELF\2\1", 6);
    memcpy(cubin + 0x28, &offset, 8);
    memcpy(cubin + 0x3a, (uint16_t[]){64, 1}, 4);
    memcpy(cubin + 64 + 0x18, &data, 8);
    memcpy(cubin + 64 + 0x20, &size, 8);
    memcpy(cubin + 128, &hash, 8);
    return 0;
}
