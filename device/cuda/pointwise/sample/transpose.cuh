// What Go puts ahead of transpose.cu for one kernel. TestSamples writes it with -update, of:
// lstm-peephole 700 batch 1 steps 7 backward fp32 narrow=1 stepwise=false next
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define FROM float
#define TO float
