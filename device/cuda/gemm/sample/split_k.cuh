// What Go puts ahead of split_k.cu for one kernel. TestSamples writes it with -update, of:
// products [2312 256 65536] trans=false split=0 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
