// The gradient of a layer over all steps, from the last to the first, by blocks over the whole GPU;
// see barrier.tpl.
extern "C" __global__ void __launch_bounds__(256, 1)
$NAME(int steps, int batch, int hidden, int units, int chunk, unsigned* counter, unsigned* status$PARAMS, const W* from) {
  DYNAMIC_SHARED(memory);
  const int begin = blockIdx.x * units, mine = min(units, hidden - begin), length = GATES * hidden;
  const int rows = (mine + ROWS - 1) / ROWS * ROWS;
  int* word = (int*)memory;
  float* sums = (float*)(memory + 16);                                // [rows][chunk]
  W* weights = (W*)(sums + (units + ROWS - 1) / ROWS * ROWS * chunk); // [rows][length]
  for (int i = threadIdx.x; i < mine * length; i += blockDim.x)
    weights[i % mine * length + i / mine] = from[(long long)(i / mine) * hidden + begin + i % mine];
  for (int i = mine * length + threadIdx.x; i < rows * length; i += blockDim.x) narrow(weights[i], 0);
  __syncthreads();
  for (int t = steps - 1; t >= 0; t--) {
    for (int i = threadIdx.x; i < batch * mine; i += blockDim.x) {
      const int n = i / mine, u = begin + i % mine;
$CELL    }
    if (!barrier(counter, steps - t, word, status)) return;
    for (int part = 0; part < batch; part += chunk) {
      const int count = min(chunk, batch - part);
      products<ROWS, SAMPLES>(weights, rows, length, $PRODUCTS + ((long long)t * batch + part) * ld_$PRODUCTS, ld_$PRODUCTS, count, sums, chunk);
      __syncthreads();
      for (int i = threadIdx.x; i < count * mine; i += blockDim.x) {
        const int n = part + i / mine, u = begin + i % mine;
        float sum = sums[i % mine * chunk + i / mine];
        narrow($CARRY);
      }
      __syncthreads();
    }
  }
  finish(counter, steps);
}
