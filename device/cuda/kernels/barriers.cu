#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/barriers.cuh"
#endif
// barriers makes all blocks wait for each other, count times.
extern "C" __global__ void __launch_bounds__(256) barriers(int count, unsigned* counter, unsigned* status) {
  DYNAMIC_SHARED(memory);
  for (int i = 1; i <= count; i++)
    if (!barrier(counter, i, (int*)memory, status)) return;
  finish(counter, count);
}
