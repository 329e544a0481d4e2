/* Runs an LSTM on the CPU and prints its last output.
 *
 *	cc -I../../bin -o forward forward.c -L../../bin -lrnnbench -Wl,-rpath,../../bin */
#include <stdio.h>
#include <stdlib.h>

#include "rnnbench.h"

enum { BATCH = 2, STEPS = 5, MOST = 64 };

static void check(int status) {
	if (status == RNNBENCH_OK) return;
	fprintf(stderr, "error %d: %s\n", status, rnnbench_error());
	exit(1);
}

/* A small number, the same in each run. */
static float draw(void) {
	static unsigned state = 1;
	state = state * 1664525u + 1013904223u;
	return (float)(state >> 8) / (1 << 24) - 0.5f;
}

int main(void) {
	rnnbench_handle device, layer, plan;
	check(rnnbench_open("cpu", &device));
	check(rnnbench_layer(device, "cell=lstm,input=3,hidden=4,layers=2", &layer));
	check(rnnbench_plan(layer, BATCH, STEPS, "forward", "auto", NULL, &plan));

	float *memory[MOST], *output = NULL;
	int64_t values = 0;
	for (int i = 0; i < MOST; i++) {
		const char *name;
		int kind, rank;
		int64_t shape[3];
		check(rnnbench_tensor(plan, i, &name, &kind, &rank, shape));
		if (!name) break;
		int64_t n = 1;
		for (int d = 0; d < rank; d++) n *= shape[d];
		memory[i] = malloc(n * sizeof(float));
		for (int64_t j = 0; j < n; j++) memory[i][j] = draw();
		check(rnnbench_bind(plan, name, memory[i], RNNBENCH_FLOAT32));
		if (kind == RNNBENCH_OUTPUT && !output) output = memory[i], values = n;
		printf("%-14s %d values\n", name, (int)n);
	}
	check(rnnbench_forward(plan, NULL));
	check(rnnbench_wait(plan));
	printf("last output:");
	for (int64_t j = values - 4; j < values; j++) printf(" %.6f", output[j]);
	printf("\n");

	const char *json;
	check(rnnbench_describe(plan, &json));
	printf("%s\n", json);
	check(rnnbench_close(device));
	return 0;
}
