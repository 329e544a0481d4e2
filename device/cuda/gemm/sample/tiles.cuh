// What Go puts ahead of tiles.cu for one kernel. TestSamples writes it with -update, of:
// gru 133 batch 8 steps 64 tf32 narrow=1 stepwise=true h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define FROM float
#define W float
#define GATES 3
#define COLUMNS 48
