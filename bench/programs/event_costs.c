/* What a tool that times commands asks of an OpenCL implementation, step by step: the iteration of
 * iteration.c with profiled queues, with events, and with questions about these. Nothing is traced.
 *
 *   event_costs [-n loop=300] [-r rounds=20] [WIDTH HEIGHT]
 *
 * All ways take turns in each round; the figures are nanoseconds per iteration (two commands). `timing.added` is what
 * the implementation itself takes for timing both: profiled.events.status_all less plain.
 */
#include "bench.h"
#include "iteration.h"

enum { PROFILED = 1, EVENTS = 2, AT_ONCE = 4, STATUS = 8, END = 16, ALL = 32, LATE = 64, START = 128, NO_READ = 256, TENTH = 512 };
enum { BATCH = 64 };

static const struct way {
    const char *name;
    int flags;
} ways[] = {
    {"plain", 0},
    {"profiled", PROFILED},
    {"events.released_at_once", EVENTS | AT_ONCE},
    {"events", EVENTS},
    {"events.status", EVENTS | STATUS},
    {"profiled.events.released_at_once", PROFILED | EVENTS | AT_ONCE},
    {"profiled.events", PROFILED | EVENTS},
    {"profiled.events.late", PROFILED | EVENTS | LATE},
    {"profiled.events.status", PROFILED | EVENTS | STATUS},
    {"profiled.events.end", PROFILED | EVENTS | END},
    {"profiled.events.start_end", PROFILED | EVENTS | START | END},
    {"profiled.events.all", PROFILED | EVENTS | ALL},
    {"profiled.events.status_all", PROFILED | EVENTS | STATUS | ALL},
    {"profiled.events.status_all.late", PROFILED | EVENTS | STATUS | ALL | LATE},
    {"profiled.every_tenth.status_all", PROFILED | EVENTS | STATUS | ALL | TENTH},
    {"profiled.launch_only.all", PROFILED | EVENTS | ALL | NO_READ},
};
enum { WAYS = sizeof ways / sizeof *ways };

static cl_event kept[2 * BATCH];
static int keeping;

static void ask(cl_event event, int flags)
{
    cl_int status;
    cl_ulong time;
    if (flags & STATUS)
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    if (flags & ALL)
        for (int what = CL_PROFILING_COMMAND_QUEUED; what <= CL_PROFILING_COMMAND_END; what++)
            OK(clGetEventProfilingInfo(event, what, sizeof time, &time, NULL));
    if (flags & START)
        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof time, &time, NULL));
    if (flags & END)
        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
}

static void finished(int flags)
{
    for (int i = 0; i < keeping; i++) {
        ask(kept[i], flags);
        OK(clReleaseEvent(kept[i]));
    }
    keeping = 0;
}

static void iterate_with(struct image *m, cl_command_queue queue, int flags, int iteration)
{
    size_t size[2] = {m->width, m->height}, bytes = sizeof(int) * m->width * m->height;
    cl_event events[2];
    int launch = flags & EVENTS && (!(flags & TENTH) || iteration % 10 == 0), both = launch && !(flags & NO_READ);
    set_arguments(m, iteration);
    OK(clEnqueueNDRangeKernel(queue, m->kernel, 2, NULL, size, NULL, 0, NULL, launch ? &events[0] : NULL));
    if (launch && flags & AT_ONCE)
        OK(clReleaseEvent(events[0]));
    OK(clEnqueueReadBuffer(queue, m->out, CL_TRUE, 0, bytes, m->pixels, 0, NULL, both ? &events[1] : NULL));
    if (both && flags & AT_ONCE)
        OK(clReleaseEvent(events[1]));
    OK(clFinish(queue));
    if (flags & AT_ONCE)
        return;
    if (launch)
        kept[keeping++] = events[0];
    if (both)
        kept[keeping++] = events[1];
    if (!(flags & LATE) || keeping == 2 * BATCH)
        finished(flags);
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){20, 0, 300});
    static double ns[WAYS][MAX_ROUNDS];
    calibrate();
    struct dev d = dev_open();
    int width = argc - optind == 2 ? atoi(argv[optind]) : 10, height = argc - optind == 2 ? atoi(argv[optind + 1]) : 10;
    struct image m = image_open(&d, width, height);
    cl_command_queue profiled = MAKE(clCreateCommandQueue(d.context, d.device, CL_QUEUE_PROFILING_ENABLE, &err));
    iterate(&m, 0); /* compiles */
    for (int round = -1; round < o.rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            int flags = ways[way].flags;
            cl_command_queue queue = flags & PROFILED ? profiled : m.queue;
            uint64_t start = ticks();
            for (long i = 0; i < o.most; i++)
                iterate_with(&m, queue, flags, i);
            finished(flags);
            /* The first round warms up. */
            if (round >= 0)
                ns[way][round] = (ticks() - start) * ns_per_tick / o.most;
        }
    }
    verify(&m, o.most - 1);
    double plain = 0, timed = 0;
    for (int way = 0; way < WAYS; way++) {
        double median = print_rounds(ways[way].name, ns[way], o.rounds);
        plain = way == 0 ? median : plain;
        timed = ways[way].flags == (PROFILED | EVENTS | STATUS | ALL) ? median : timed;
    }
    printf("timing.added %.3f\n", timed - plain);
    OK(clReleaseCommandQueue(profiled));
    image_close(&m);
    dev_close(&d);
    return 0;
}
