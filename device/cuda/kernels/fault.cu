#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/fault.cuh"
#endif
// fault reads far out of bounds.
extern "C" __global__ void fault(volatile unsigned* word) { *word = word[1ll << 40]; }
