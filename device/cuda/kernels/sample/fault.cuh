// What Go puts ahead of fault.cu for one kernel. TestSamples writes it with -update, of:
// limits and mishaps
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
