// What Go puts ahead of split.cu for one kernel. TestSamples writes it with -update, of:
// lstm-peephole 1024 batch 16 steps 64 layers 2 train fp32 tile=4 stepwise=false a100
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 8
#define TRANS 0
#define RIGHT 0
#include "../scales.cu"
