#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/empty.cuh"
#endif
// empty does nothing.
extern "C" __global__ void empty(int unused) {}
