// What Go puts ahead of largest.cu for one kernel. TestSamples writes it with -update, of:
// rnn-tanh 20 batch 16 steps 1 train fp32 split=3 stepwise=true h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 1
#include "../scales.cu"
