// What Go puts ahead of copyrows.cu for one kernel. TestSamples writes it with -update, of:
// products [16384 1536 41] trans=false split=0 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 1
#include "../scales.cu"
