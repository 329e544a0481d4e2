// What Go puts ahead of moves.cu for one kernel. TestSamples writes it with -update, of:
// moves for a host program
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define MOVES 64
