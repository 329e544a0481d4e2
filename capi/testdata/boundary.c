/* Checks of the boundary between C and the library. The argument names the check. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnnbench.h"

#define WANT(condition)                                                                                     \
	do {                                                                                                  \
		if (!(condition)) {                                                                             \
			printf("line %d: not true: %s; last error: %s\n", __LINE__, #condition, rnnbench_error()); \
			exit(1);                                                                                  \
		}                                                                                               \
	} while (0)
#define OK(call) WANT((call) == RNNBENCH_OK)
#define WRONG(call) WANT((call) == RNNBENCH_INVALID && strlen(rnnbench_error()) > 10)

enum { MOST = 64 };

/* A plan with memory bound to all of its tensors. */
typedef struct {
	rnnbench_handle layer, plan;
	float *memory[MOST];
	int n;
} net;

static void make(net *of, rnnbench_handle device, const char *description, int batch, int steps, const char *pass) {
	OK(rnnbench_layer(device, description, &of->layer));
	OK(rnnbench_plan(of->layer, batch, steps, pass, "persistent", NULL, &of->plan));
	for (of->n = 0;; of->n++) {
		const char *name;
		int kind, rank;
		int64_t shape[3], values = 1;
		OK(rnnbench_tensor(of->plan, of->n, &name, &kind, &rank, shape));
		if (!name) break;
		for (int d = 0; d < rank; d++) values *= shape[d];
		of->memory[of->n] = calloc(values, sizeof(float));
		for (int64_t j = 0; j < values; j++) of->memory[of->n][j] = (float)(j % 7) / 7 - 0.4f;
		OK(rnnbench_bind(of->plan, name, of->memory[of->n], RNNBENCH_FLOAT32));
	}
}

static void drop(net *of) {
	OK(rnnbench_close(of->layer));
	for (int i = 0; i < of->n; i++) free(of->memory[i]);
}

static void handles(rnnbench_handle device) {
	net a;
	make(&a, device, "cell=lstm,input=3,hidden=5", 2, 4, "train");
	WRONG(rnnbench_forward(0, NULL));
	WRONG(rnnbench_forward(12345, NULL));
	WRONG(rnnbench_forward(device, NULL));
	WRONG(rnnbench_forward(a.layer, NULL));
	WRONG(rnnbench_backward(a.plan, NULL));
	OK(rnnbench_forward(a.plan, NULL));
	OK(rnnbench_backward(a.plan, NULL));
	WRONG(rnnbench_backward(a.plan, NULL));
	OK(rnnbench_forward(a.plan, NULL));
	rnnbench_handle other;
	OK(rnnbench_plan(a.layer, 2, 4, "train", "persistent", NULL, &other)); /* the first is between its passes */
	WANT(other != a.plan);
	WRONG(rnnbench_forward(other, NULL)); /* nothing is bound */
	OK(rnnbench_release(a.plan));
	OK(rnnbench_close(other));
	OK(rnnbench_plan(a.layer, 2, 4, "train", "persistent", NULL, &other));
	WANT(other == a.plan);
	rnnbench_handle plan = a.plan;
	drop(&a);
	WRONG(rnnbench_forward(plan, NULL));
	WRONG(rnnbench_close(plan));
	WRONG(rnnbench_close(plan));
}

static unsigned state = 1;
static unsigned any(unsigned n) {
	state = state * 1664525u + 1013904223u;
	return (state >> 10) % n;
}

/* Calls functions with arguments at random, some of which are right. No status is wrong, but none may crash. */
static void nonsense(rnnbench_handle device) {
	static const char *texts[] = {NULL, "", "=", ",", "lstm", "cell=lstm", "cell=nothing,input=1,hidden=1", "cell=gru,input=-1,hidden=3",
		"cell=lstm,input=3,hidden=5", "cell=gru,input=2,hidden=2,layers=2,direction=both", "hidden=99999999999999999999", "input=3,hidden=1000000000",
		"cell=lstm,input=3,hidden=5,precision=bf17", "cell=/dev/zero.cell,input=1,hidden=1", "forward", "train", "auto", "race", "persistent", "persistent:streams=99",
		"scan", "cpu", "cpu:0", "cpu:x", "cuda:99", "input", "weight_ih_l0", "grad_output"};
	const int words = sizeof texts / sizeof *texts;
	static float memory[4096];
	for (int i = 0; i < 4000; i++) {
		rnnbench_handle at = any(2) ? any(200) : device, out = 0;
		const char *a = texts[any(words)], *b = texts[any(words)];
		int32_t lengths[8];
		for (int j = 0; j < 8; j++) lengths[j] = (int32_t)any(6) - 1;
		int batch = (int)any(10) - 1, steps = (int)any(8) - 1, kind, rank, format[4] = {(int)any(5) - 1, 0, 0, 9};
		int64_t bytes, shape[3];
		void *places[4] = {memory, NULL, (char *)memory + any(3), memory};
		const char *text;
		switch (any(12)) {
		case 0: rnnbench_layer(at, a, any(5) ? &out : NULL); break;
		case 1: rnnbench_plan(at, batch, steps, a, b, any(3) || batch > 8 ? NULL : lengths, any(5) ? &out : NULL); break;
		case 2: rnnbench_plan(at, 1 + (int)any(3), 1 + (int)any(4), any(2) ? "train" : "forward", any(2) ? "auto" : "naive", NULL, &out); break;
		case 3: rnnbench_memory(at, batch, steps, a, b, NULL, any(4) ? &bytes : NULL); break;
		case 4: rnnbench_tensor(at, (int)any(60) - 10, any(5) ? &text : NULL, &kind, &rank, shape); break;
		case 5: rnnbench_bind(at, a, any(2) ? NULL : memory, (int)any(5) - 1); break;
		case 6: rnnbench_bind_all(at, (int)any(6) - 1, any(4) ? places : NULL, any(4) ? format : NULL); break;
		case 7: rnnbench_update(at); break;
		case 8: rnnbench_release(at); break;
		case 9: rnnbench_wait(at); break;
		case 10: rnnbench_describe(at, any(4) ? &text : NULL); break;
		case 11: if (at != device) rnnbench_close(at); break;
		}
		if (!any(3)) rnnbench_open(texts[20 + any(5)], any(3) ? NULL : &out);
		if (out && any(40) && out != device && i % 2) rnnbench_close(out);
	}
}

static rnnbench_handle shared;

static void *work(void *index) {
	net a;
	make(&a, shared, (long)index % 2 ? "cell=gru,input=7,hidden=9" : "cell=lstm,input=4,hidden=8,layers=2", 3, 5, "train");
	for (int i = 0; i < 200; i++) {
		OK(rnnbench_forward(a.plan, NULL));
		OK(rnnbench_backward(a.plan, NULL));
	}
	rnnbench_forward(9999999, NULL);
	WANT(strstr(rnnbench_error(), "9999999")); /* each thread has its own sentence */
	drop(&a);
	return NULL;
}

static void threads(rnnbench_handle device) {
	pthread_t all[8];
	shared = device;
	for (long i = 0; i < 8; i++) WANT(!pthread_create(&all[i], NULL, work, (void *)i));
	for (long i = 0; i < 8; i++) WANT(!pthread_join(all[i], NULL));
}

static void child_after_fork(rnnbench_handle device) {
	net a;
	make(&a, device, "cell=lstm,input=3,hidden=5", 2, 4, "forward");
	OK(rnnbench_forward(a.plan, NULL));
	pid_t child = fork();
	WANT(child >= 0);
	if (!child) {
		int wrong = rnnbench_forward(a.plan, NULL) != RNNBENCH_INVALID || !strstr(rnnbench_error(), "forked");
		_exit(wrong);
	}
	int status;
	WANT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(rnnbench_forward(a.plan, NULL));
	drop(&a);
}

static void handler(int number) { (void)number; }

/* The caller's thread and process are left as they were. */
static void process(rnnbench_handle device) {
	cpu_set_t before, after;
	CPU_ZERO(&before);
	CPU_ZERO(&after);
	WANT(!sched_getaffinity(0, sizeof before, &before));
	WANT(!fesetround(FE_TOWARDZERO));
	feclearexcept(FE_ALL_EXCEPT);
	struct sigaction ours = {.sa_handler = handler}, old;
	int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM, SIGHUP, SIGPROF};
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) WANT(!sigaction(numbers[i], &ours, NULL));
	net a;
	make(&a, device, "cell=lstm,input=64,hidden=128", 8, 20, "train");
	OK(rnnbench_forward(a.plan, NULL));
	OK(rnnbench_backward(a.plan, NULL));
	drop(&a);
	WANT(fegetround() == FE_TOWARDZERO);
	WANT(!sched_getaffinity(0, sizeof after, &after) && CPU_EQUAL(&before, &after));
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) WANT(!sigaction(numbers[i], NULL, &old) && old.sa_handler == handler);
	/* A subnormal number is still one on this thread. */
	volatile float small = 1e-39f;
	WANT(small * 2 > 0);
}

static long resident(void) {
	long pages = 0, all = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	WANT(f && fscanf(f, "%ld %ld", &all, &pages) == 2);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Memory does not grow with calls, nor with layers and plans that are closed. */
static void memory(rnnbench_handle device) {
	net a;
	make(&a, device, "cell=lstm,input=8,hidden=16", 2, 3, "train");
	long before = 0;
	for (int i = 0; i < 12000; i++) {
		OK(rnnbench_update(a.plan));
		OK(rnnbench_forward(a.plan, NULL));
		OK(rnnbench_backward(a.plan, NULL));
		rnnbench_forward(0, NULL);
		if (i == 2000) before = resident();
	}
	WANT(resident() < before + (8 << 20));
	for (int i = 0; i < 600; i++) {
		net b;
		make(&b, device, "cell=gru,input=8,hidden=16", 2, 3, "train");
		drop(&b);
		if (i == 200) before = resident();
	}
	WANT(resident() < before + (16 << 20));
	drop(&a);
}

static void *endless(void *plan) {
	while (rnnbench_forward(*(rnnbench_handle *)plan, NULL) != RNNBENCH_INTERNAL) continue;
	return NULL;
}

/* The process may end while a call is under way. */
static void leave(rnnbench_handle device) {
	static net a;
	make(&a, device, "cell=lstm,input=64,hidden=128", 8, 50, "forward");
	pthread_t thread;
	WANT(!pthread_create(&thread, NULL, endless, &a.plan));
	usleep(20000);
	exit(0);
}

int main(int argc, char **argv) {
	static const struct {
		const char *name;
		void (*run)(rnnbench_handle);
	} checks[] = {{"handles", handles}, {"nonsense", nonsense}, {"threads", threads}, {"fork", child_after_fork}, {"process", process}, {"memory", memory}, {"exit", leave}};
	rnnbench_handle device;
	OK(rnnbench_open("cpu:2", &device));
	for (unsigned i = 0; i < sizeof checks / sizeof *checks; i++) {
		if (argc > 1 && !strcmp(argv[1], checks[i].name)) {
			checks[i].run(device);
			OK(rnnbench_close(device));
			printf("passed\n");
			return 0;
		}
	}
	printf("usage: boundary CHECK\n");
	return 2;
}
