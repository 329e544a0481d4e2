// What Go puts ahead of recurrence.cu for one kernel. TestSamples writes it with -update, of:
// ls-lstm 64 batch 128 steps 2 tf32  stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, CLUSTER = 1, UNITS = 64, SAMPLES = 1, TILE = 1, LANES = 4, CHUNKS = 4, RESIDENT = 4, SETTLED = 1, ORDERED = 1, CLOCKS = 0; };
#include "../simt.cuh"
