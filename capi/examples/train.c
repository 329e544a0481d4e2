/* Trains a GRU to remember: after the last step its state is to be the first step's input. The loss
 * and the step of gradient descent are the program's own; the passes are the library's.
 *
 *	cc -I../../bin -o train train.c -L../../bin -lrnnbench -Wl,-rpath,../../bin */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnnbench.h"

enum { BATCH = 16, STEPS = 3, UNITS = 8, MOST = 64, ROUNDS = 3000 };

typedef struct {
	char name[32];
	int kind, values;
	float *at;
} tensor;

static tensor tensors[MOST];

static void check(int status) {
	if (status == RNNBENCH_OK) return;
	fprintf(stderr, "error %d: %s\n", status, rnnbench_error());
	exit(1);
}

static tensor *find(const char *name) {
	for (tensor *t = tensors; t < tensors + MOST; t++)
		if (!strcmp(t->name, name)) return t;
	fprintf(stderr, "the plan has no tensor %s\n", name);
	exit(1);
}

/* The gradient of a parameter has its name, with grad_ in front. */
static float *gradient(const tensor *of) {
	for (tensor *t = tensors; t < tensors + MOST; t++)
		if (!strncmp(t->name, "grad_", 5) && !strcmp(t->name + 5, of->name)) return t->at;
	return NULL;
}

static float draw(void) {
	static unsigned state = 7;
	state = state * 1664525u + 1013904223u;
	return (float)(state >> 8) / (1 << 24) - 0.5f;
}

int main(void) {
	rnnbench_handle device, layer, plan;
	check(rnnbench_open("cpu:1", &device));
	char description[80];
	snprintf(description, sizeof description, "cell=gru,input=%d,hidden=%d", UNITS, UNITS);
	check(rnnbench_layer(device, description, &layer));
	check(rnnbench_plan(layer, BATCH, STEPS, "train", "auto", NULL, &plan));
	for (int i = 0; i < MOST; i++) {
		tensor *t = &tensors[i];
		const char *name;
		int rank;
		int64_t shape[3];
		check(rnnbench_tensor(plan, i, &name, &t->kind, &rank, shape));
		if (!name) break;
		snprintf(t->name, sizeof t->name, "%s", name);
		t->values = 1;
		for (int d = 0; d < rank; d++) t->values *= (int)shape[d];
		t->at = calloc(t->values, sizeof(float));
		for (int j = 0; t->kind == RNNBENCH_PARAMETER && j < t->values; j++) t->at[j] = draw();
		check(rnnbench_bind(plan, t->name, t->at, RNNBENCH_FLOAT32));
	}
	/* The gradient of the output is 0: the loss depends on the last state alone. */
	float *input = find("input")->at, *last = find("h_n")->at, *given = find("grad_h_n")->at;
	for (int round = 0; round < ROUNDS; round++) {
		for (int j = 0; j < STEPS * BATCH * UNITS; j++) input[j] = draw();
		check(rnnbench_forward(plan, NULL));
		float loss = 0;
		for (int j = 0; j < BATCH * UNITS; j++) {
			float d = last[j] - input[j];
			loss += d * d / (BATCH * UNITS);
			given[j] = 2 * d / (BATCH * UNITS);
		}
		check(rnnbench_backward(plan, NULL));
		for (tensor *t = tensors; t->at; t++) {
			if (t->kind != RNNBENCH_PARAMETER) continue;
			float *grad = gradient(t);
			for (int j = 0; j < t->values; j++) t->at[j] -= 2 * grad[j];
		}
		check(rnnbench_update(plan));
		if (round % 1000 == 0 || round == ROUNDS - 1) printf("round %4d: loss %.4f\n", round, loss);
	}
	check(rnnbench_close(device));
	return 0;
}
