// What Go puts ahead of skinny.cu for one kernel. TestSamples writes it with -update, of:
// gru 133 batch 8 steps 64 tf32 narrow=1 stepwise=true h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
typedef float W;
enum { TILES = 3, EIGHTS = 1, BANDS = 1, SLICES = 8, STAGES = 4, FOLD = 0, ALIGNED = 0, EXACT = 0 };
