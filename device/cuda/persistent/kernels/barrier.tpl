// A layer over all steps by blocks over the whole GPU. Each block owns a band of units and has
// their weights in shared memory. It reads the states of all units from memory, forms its units'
// products, and runs their cell. Between steps all blocks wait for each other. barrier.go replaces
// the words behind dollar signs, from the cell's program.
extern "C" __global__ void __launch_bounds__(256, 1)
$NAME(int steps, int batch, int hidden, int units, int chunk, unsigned* counter, unsigned* status$PARAMS$WEIGHTS) {
  DYNAMIC_SHARED(memory);
  const int begin = blockIdx.x * units, mine = min(units, hidden - begin);
  const int rows = (mine * GATES + ROWS - 1) / ROWS * ROWS;
  int* word = (int*)memory;
  float* sums = (float*)(memory + 16);                            // [rows][chunk]
  W* weights = (W*)(sums + (units * GATES + ROWS - 1) / ROWS * ROWS * chunk); // [rows][hidden]
  const W* from[GATES] = {$ALL};
#pragma unroll
  for (int g = 0; g < GATES; g++)
    for (int i = threadIdx.x; i < mine * hidden; i += blockDim.x)
      weights[(i % mine * GATES + g) * hidden + i / mine] = from[g][(long long)(i / mine) * hidden + begin + i % mine];
  for (int i = mine * GATES * hidden + threadIdx.x; i < rows * hidden; i += blockDim.x) narrow(weights[i], 0);
  __syncthreads();
  for (int t = 0; t < steps; t++) {
    for (int part = 0; part < batch; part += chunk) {
      const int count = min(chunk, batch - part);
      products<ROWS, SAMPLES>(weights, rows, hidden, $STATES + ((long long)t * batch + part) * ld_$STATES, ld_$STATES, count, sums, chunk);
      __syncthreads();
      for (int i = threadIdx.x; i < count * mine; i += blockDim.x) {
        const int n = part + i / mine, u = begin + i % mine;
        const float* sum = sums + i % mine * GATES * chunk + i / mine;
$CELL      }
      __syncthreads();
    }
    if (t + 1 < steps && !barrier(counter, t + 1, word, status)) return;
  }
  finish(counter, steps - 1);
}
