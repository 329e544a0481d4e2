// What Go puts ahead of barriers.cu for one kernel. TestSamples writes it with -update, of:
// limits and mishaps
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#include "../../persistent/kernels/grid.cu"
