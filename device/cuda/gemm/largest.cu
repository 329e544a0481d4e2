#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/largest.cuh"
#endif
// largest writes the largest values of a factor's parts to its tail, the absmax cache (scales.cu).
extern "C" __global__ void __launch_bounds__(256) largest(int rows, int cols, const float* from, int ldfrom, float* tail) {
  begin_next();
  wait_previous();
  largest_part(rows, cols, from, ldfrom, tail);
}
