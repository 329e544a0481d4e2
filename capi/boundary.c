/* The functions of rnnbench.h. They pass calls on to Go, except in a child process after fork: the
 * threads that run Go do not exist there, so a call would never return. */
#include "rnnbench.h"

#include <pthread.h>
#include <string.h>

#include "_cgo_export.h"

/* The last sentence of each thread. It has no destructor, so that a thread may end at any time. */
static __thread char last[1024];

const char *rnnbench_error(void) { return last; }

void rnnbench_say(const char *sentence) {
	last[0] = 0;
	if (sentence) strncpy(last, sentence, sizeof last - 1); /* the last byte stays 0 */
}

static int forked;

static void fork_happened(void) { forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(0, 0, fork_happened); }

#define PASS(call)                                                                                             \
	if (forked) {                                                                                            \
		rnnbench_say("this process was forked: call the library in the parent, or start a new process"); \
		return RNNBENCH_INVALID;                                                                         \
	}                                                                                                        \
	return call

const char *rnnbench_version(void) {
	static const char none[] = "";
	return forked ? none : goVersion();
}

int rnnbench_open(const char *device, rnnbench_handle *opened) { PASS(goOpen((char *)device, opened)); }

int rnnbench_layer(rnnbench_handle device, const char *description, rnnbench_handle *layer) {
	PASS(goLayer(device, (char *)description, layer));
}

int rnnbench_plan(rnnbench_handle layer, int batch, int steps, const char *pass, const char *technique, const int32_t *lengths,
		rnnbench_handle *plan) {
	PASS(goPlan(layer, batch, steps, (char *)pass, (char *)technique, (int32_t *)lengths, plan));
}

int rnnbench_memory(rnnbench_handle layer, int batch, int steps, const char *pass, const char *technique, const int32_t *lengths,
		int64_t *bytes) {
	PASS(goMemory(layer, batch, steps, (char *)pass, (char *)technique, (int32_t *)lengths, bytes));
}

int rnnbench_describe(rnnbench_handle any, const char **json) { PASS(goDescribe(any, (char **)json)); }

int rnnbench_tensor(rnnbench_handle plan, int index, const char **name, int *kind, int *rank, int64_t shape[3]) {
	PASS(goTensor(plan, index, (char **)name, kind, rank, shape));
}

int rnnbench_bind(rnnbench_handle plan, const char *name, void *memory, int format) {
	PASS(goBind(plan, (char *)name, memory, format));
}

int rnnbench_bind_all(rnnbench_handle plan, int n, void *const *memory, const int *format) {
	PASS(goBindAll(plan, n, (void **)memory, (int *)format));
}

int rnnbench_update(rnnbench_handle plan) { PASS(goUpdate(plan)); }
int rnnbench_forward(rnnbench_handle plan, void *stream) { PASS(goForward(plan, stream)); }
int rnnbench_backward(rnnbench_handle plan, void *stream) { PASS(goBackward(plan, stream)); }
int rnnbench_release(rnnbench_handle plan) { PASS(goRelease(plan)); }
int rnnbench_wait(rnnbench_handle plan) { PASS(goWait(plan)); }
int rnnbench_close(rnnbench_handle any) { PASS(goClose(any)); }
