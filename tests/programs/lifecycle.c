/* Calls at the odd moments of a process: from a constructor (perhaps before an
 * interposer's own start), a destructor, an atexit handler, a signal handler that
 * interrupts a call, and a thread-specific destructor at the end of a thread.
 *
 * The number of loops before the last alarm differs from run to run; EXPECT is
 * exact for the run that prints it.
 */
#include "cl_util.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { ALARMS = 200, ALARM_US = 500, BURST = 20, PAUSE_US = 50 };

static cl_event event_of_handler, event_of_main;
static volatile sig_atomic_t alarms;
static pthread_key_t key;

static void count_platforms(void)
{
    cl_uint n = 0;
    OK(clGetPlatformIDs(0, NULL, &n));
    CHECK(n >= 1);
}

__attribute__((constructor)) static void before_main(void)
{
    count_platforms();
}

/* The last code of ours that runs: it counts itself, then prints. */
__attribute__((destructor)) static void after_main(void)
{
    count_platforms();
    expect_print();
}

static void at_exit(void)
{
    count_platforms();
}

/* Only calls that take no lock which the interrupted thread may hold: the handler has
 * an event of its own. */
static void on_alarm(int signal)
{
    (void)signal;
    int saved = errno;
    cl_int status = 99;
    count_platforms();
    OK(clGetEventInfo(event_of_handler, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                      NULL));
    CHECK(status == CL_SUBMITTED);
    alarms++;
    errno = saved;
}

static void loop_under_alarms(void)
{
    struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &act, NULL) == 0);
    struct itimerval every = {{0, ALARM_US}, {0, ALARM_US}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (alarms < ALARMS) {
        for (int i = 0; i < BURST; i++) {
            cl_int status = 99;
            count_platforms();
            OK(clGetEventInfo(event_of_main, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                              &status, NULL));
            CHECK(status == CL_SUBMITTED);
        }
        /* Without pauses this is 80 million calls a second, a test of the ring's size;
         * with them some of the 200 alarms still fall into a call. */
        for (double end = now_us() + PAUSE_US; now_us() < end;)
            ;
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(signal(SIGALRM, SIG_IGN) != SIG_ERR);
}

static void at_thread_end(void *value)
{
    CHECK(value == &key);
    count_platforms();
    count_platforms();
}

static void *thread(void *unused)
{
    CHECK(pthread_setspecific(key, &key) == 0);
    count_platforms();
    return unused;
}

/* This thread's only calls are those of its destructor. */
static void *silent_thread(void *unused)
{
    CHECK(pthread_setspecific(key, &key) == 0);
    return unused;
}

static void run_threads(void)
{
    void *(*body[2])(void *) = {thread, silent_thread};
    CHECK(pthread_key_create(&key, at_thread_end) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, body[i], NULL) == 0);
        CHECK(pthread_join(t, NULL) == 0);
    }
}

int main(void)
{
    CHECK(atexit(at_exit) == 0);
    run_threads();

    struct dev d = dev_open();
    event_of_handler = MAKE(clCreateUserEvent(d.context, &err));
    event_of_main = MAKE(clCreateUserEvent(d.context, &err));
    loop_under_alarms();
    OK(clSetUserEventStatus(event_of_handler, CL_COMPLETE));
    OK(clSetUserEventStatus(event_of_main, CL_COMPLETE));
    OK(clReleaseEvent(event_of_handler));
    OK(clReleaseEvent(event_of_main));
    dev_close(&d);
    printf("%d alarms or more\n", ALARMS);
    return 0;
}
