/* rnnbench.h: recurrent layers in the fastest way known for this machine.
 *
 *	rnnbench_handle device, layer, plan;
 *	rnnbench_open("cpu", &device);
 *	rnnbench_layer(device, "cell=lstm,input=64,hidden=128,layers=2", &layer);
 *	rnnbench_plan(layer, batch, steps, "forward", "auto", NULL, &plan);
 *	rnnbench_bind(plan, "weight_ih_l0", weights, RNNBENCH_FLOAT32);   ... and the other tensors
 *	rnnbench_forward(plan, NULL);
 *	rnnbench_close(device);
 *
 * Every function returns a status. After any but RNNBENCH_OK, rnnbench_error() says in a sentence
 * what is wrong and what to do. Functions may be called from any thread; those of one device run
 * one after the other. A handle that is closed or was never given out is an error, not a crash.
 * After fork, only the parent may use the library.
 */
#ifndef RNNBENCH_H
#define RNNBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A device, a layer or a plan; 0 is none. Closing a device closes its layers, and closing a layer its plans. */
typedef uint64_t rnnbench_handle;

enum {
	RNNBENCH_OK = 0,
	RNNBENCH_INVALID = 1,     /* a wrong argument, handle, name or order of calls */
	RNNBENCH_UNSUPPORTED = 2, /* no technique does this; another layer or technique may */
	RNNBENCH_MEMORY = 3,      /* too little memory is left */
	RNNBENCH_DEVICE = 4,      /* the device failed, or is not there */
	RNNBENCH_INTERNAL = 5     /* a mistake in this library */
};

/* Number formats of bound memory. They need not be those of the layer's products. */
enum { RNNBENCH_FLOAT32 = 0, RNNBENCH_FLOAT16 = 1, RNNBENCH_BFLOAT16 = 2 };

/* What a tensor of a plan is. */
enum {
	RNNBENCH_PARAMETER = 0, /* read when rnnbench_update asks for it: weight_ih_l0, weight_hh_l0, bias_ih_l0, … */
	RNNBENCH_INPUT = 1,     /* read by forward: input, h_0, c_0 */
	RNNBENCH_OUTPUT = 2,    /* written by forward: output, h_n, c_n */
	RNNBENCH_GIVEN = 3,     /* read by backward: grad_output, grad_h_n, grad_c_n; no grad_h_n with a projection */
	RNNBENCH_GRADIENT = 4   /* written by backward: grad_input, grad_h_0, grad_weight_ih_l0, … */
};

/* The last sentence of this thread; "" if its last call went well. It is valid until the thread's next call. */
const char *rnnbench_error(void);

/* The version of the library, as `rnnbench version` prints it. */
const char *rnnbench_version(void);

/* Opens "cpu", "cpu:4" (so many threads) or "cuda:0". A GPU is used in the process's primary context, as CUDA's runtime and
 * PyTorch use it. */
int rnnbench_open(const char *device, rnnbench_handle *opened);

/* Makes a stack of layers from key=value pairs with commas between:
 *	cell       a cell that `rnnbench list cells` shows, or the name of a file of equations; default lstm
 *	input      features of the input
 *	hidden     units of a layer
 *	layers     default 1
 *	direction  forward, reverse or both; default forward
 *	projection width of the outputs, if less than hidden
 *	heads      parts of the units that the recurrent product does not mix
 *	precision  of the products: fp32, tf32, bf16, fp16 or, for inference
 *	           on a CPU, int8; default fp32
 *	batchfirst 1: input, output and their gradients are batch × steps × features; default 0 */
int rnnbench_layer(rnnbench_handle device, const char *description, rnnbench_handle *layer);

/* Plans the layer for one shape. pass is "forward" or "train". technique is "auto" (wisdom, else the
 * model of this machine), "race" (the likeliest are timed, once), or one with its settings, as
 * `--impl` takes it: "persistent:streams=2". lengths are the steps of each sequence, or NULL: all
 * have all steps. Then rows of the output past a sequence's end are not written. The same request returns the same plan, unless that is between its forward and its
 * backward pass: then it makes another one. */
int rnnbench_plan(rnnbench_handle layer, int batch, int steps, const char *pass, const char *technique, const int32_t *lengths, rnnbench_handle *plan);

/* The bytes that such a plan would allocate on the device. */
int rnnbench_memory(rnnbench_handle layer, int batch, int steps, const char *pass, const char *technique, const int32_t *lengths, int64_t *bytes);

/* Describes a device, a layer or a plan as JSON, such as the technique of a plan with its settings and why it was chosen. The text
 * is valid until the thread's next call. */
int rnnbench_describe(rnnbench_handle any, const char **json);

/* Describes tensor number index of a plan, from 0: its name as in PyTorch, its kind (RNNBENCH_PARAMETER …), its rank and its shape.
 * Beyond the last one, *name is NULL. The name is valid until the plan is closed. */
int rnnbench_tensor(rnnbench_handle plan, int index, const char **name, int *kind, int *rank, int64_t shape[3]);

/* Binds memory of the device to a tensor, row-major, until another call binds other memory. NULL is zeros for what is read; for what
 * is written, it leaves it out. Parameters and the input, the output and grad_output must be bound. */
int rnnbench_bind(rnnbench_handle plan, const char *name, void *memory, int format);

/* Binds the tensors number 0 … n-1 at once, in one call. */
int rnnbench_bind_all(rnnbench_handle plan, int n, void *const *memory, const int *format);

/* Says that parameters have changed. The next forward pass reads them. */
int rnnbench_update(rnnbench_handle plan);

/* Run the passes. stream is a CUstream (cudaStream_t), NULL the default stream; a CPU ignores it. On a GPU the calls return before
 * the work is done, which is in order with the stream's other work, and may be captured in a graph. forward of a training plan keeps
 * what its backward pass needs: a second forward before backward forgets the first. */
int rnnbench_forward(rnnbench_handle plan, void *stream);
int rnnbench_backward(rnnbench_handle plan, void *stream);

/* Forgets a forward pass whose backward pass will not come, so that rnnbench_plan can return this plan again. */
int rnnbench_release(rnnbench_handle plan);

/* Waits for all work of a plan and returns its error, if there was any. */
int rnnbench_wait(rnnbench_handle plan);

/* Closes a device, a layer or a plan. */
int rnnbench_close(rnnbench_handle any);

#ifdef __cplusplus
}
#endif

#endif
