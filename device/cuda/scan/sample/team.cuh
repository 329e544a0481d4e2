// What Go puts ahead of team.cu for one kernel. TestSamples writes it with -update, of:
// scan linear [4096 1 33] train=false fp32  h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
enum { V = 1, K = 6, TAIL = 6, N = 1, LANES = 32, THREADS = 256, PLACES = 3, PARTS = 1, BEHIND = 2, HOLD = 1, BUFFER = 7680, STAGED = 0, SEEKERS = 2, LOOKS = 12, STATES = 4, COPIERS = 1, UNITS = 17, SEQS = 1, OVER = 0, RING = 0, PACED = true };
#include "../linear.cu"
