// What Go puts ahead of grid.cu for one kernel. TestSamples writes it with -update, of:
// ls-lstm 700 batch 64 steps 2 backward bf16 resident=3 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
