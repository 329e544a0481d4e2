// What Go puts ahead of pack_operand.cu for one kernel. TestSamples writes it with -update, of:
// rnn-tanh 20 batch 16 steps 1 train fp32 split=3 stepwise=true h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 1
#define ALONG 1
#define GROUPS 2
#define STAGES 6
#define BIAS 0
#include "../scales.cu"
