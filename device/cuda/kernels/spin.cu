#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/spin.cuh"
#endif
// spin waits for a word that nobody writes.
extern "C" __global__ void spin(volatile unsigned* word) {
  while (*word == 0) {}
}
