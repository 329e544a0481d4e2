// What Go puts ahead of linear.cu for one kernel. TestSamples writes it with -update, of:
// scan linear [64 1 20] train=false fp32 scansteps=4 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
enum { V = 4, K = 4, N = 4, RESIDENT = 3, HEADSTART = 256, UNITS = 0, SEQS = 0, OVER = 0, LANES = 0 };
