// What Go puts ahead of pack_fragments.cu for one kernel. TestSamples writes it with -update, of:
// lstm 512 batch 8 steps 64 train fp32 tensor=1 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, ORDERED = 0, BAND = 16, EXACT = 1; };
#include "../pack_fragments.cuh"
typedef float FROM;
typedef float W;
#include "../recurrence.cu"
#include "../fragments.cu"
