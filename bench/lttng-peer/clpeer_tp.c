/* The bodies of the events, which LTTng's headers make from clpeer_tp.h. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "clpeer_tp.h"
