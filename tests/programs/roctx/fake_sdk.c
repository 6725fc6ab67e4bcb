/* Stands for rocprofiler-sdk's ROCTX library, which is in no package that the tests could install: its functions as
 * AMD documents them, without a tool behind them. Written for the tests; nothing here is AMD's. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static _Thread_local int open_ranges;
static atomic_ullong last_id;

API void roctxMarkA(const char *message)
{
    (void)strlen(message);
}

API int roctxRangePushA(const char *message)
{
    (void)strlen(message);
    return open_ranges++;
}

API int roctxRangePop(void)
{
    return open_ranges == 0 ? -1 : --open_ranges;
}

API uint64_t roctxRangeStartA(const char *message)
{
    (void)strlen(message);
    return atomic_fetch_add(&last_id, 1) + 1;
}

API void roctxRangeStop(uint64_t id)
{
    (void)id;
}

API int roctxProfilerPause(uint64_t thread)
{
    (void)thread;
    return 0;
}

API int roctxProfilerResume(uint64_t thread)
{
    (void)thread;
    return 0;
}

API int roctxNameOsThread(const char *name)
{
    return (int)strlen(name) == 0;
}

/* A tool that does not know agents, so that there is a failure. */
API int roctxNameHsaAgent(const char *name, const void *agent)
{
    return name != NULL && agent != NULL ? -1 : 1;
}

API int roctxNameHipDevice(const char *name, int device)
{
    return name == NULL || device < 0;
}

API int roctxNameHipStream(const char *name, const void *stream)
{
    return name == NULL || stream == NULL;
}

API int roctxGetThreadId(uint64_t *thread)
{
    *thread = (uint64_t)syscall(SYS_gettid);
    return 0;
}
