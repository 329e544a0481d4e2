// What Go puts behind grid.cu for the kernel of sample/grid.cuh.
typedef bf16 W;
enum { GATES = 4, ROWS = 4, SAMPLES = 8 };
// The gradient of a layer over all steps, from the last to the first, by blocks over the whole GPU;
// see barrier.tpl.
extern "C" __global__ void __launch_bounds__(256, 1)
persistent_backward_barrier_ls_lstm(int steps, int batch, int hidden, int units, int chunk, unsigned* counter, unsigned* status, const float* g_dout, int ld_g_dout, const float* g_dnext0, int ld_g_dnext0, const float* g_next1, int ld_g_next1, const float* g_saved, int ld_g_saved, const float* g_dnext1, int ld_g_dnext1, const float* g_prev1, int ld_g_prev1, float* g_dnext2, int ld_g_dnext2, const float* g_prev2, int ld_g_prev2, bf16* g_dx, int ld_g_dx, float* g_dprev1, int ld_g_dprev1, float* g_dprev2, int ld_g_dprev2, const W* from) {
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
      float dout0 = widen(g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
      float dnext0 = widen(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u]);
      float next1 = widen(g_next1[(long long)((t + 1) * batch + n) * ld_g_next1 + (long long)0 * hidden + u]);
      float saved5 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)5 * hidden + u]);
      float dnext1 = widen(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u]);
      float prev1 = widen(g_prev1[(long long)(t * batch + n) * ld_g_prev1 + (long long)0 * hidden + u]);
      float saved4 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)4 * hidden + u]);
      float saved3 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)3 * hidden + u]);
      float saved2 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)2 * hidden + u]);
      float dnext2 = widen(g_dnext2[(long long)(n) * ld_g_dnext2 + (long long)0 * hidden + u]);
      float saved1 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)1 * hidden + u]);
      float saved0 = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)0 * hidden + u]);
      float prev2 = widen(g_prev2[(long long)(t * batch + n) * ld_g_prev2 + (long long)0 * hidden + u]);
      float t0 = dout0 + dnext0;
      float t1 = t0 * next1;
      t0 = t0 * saved5;
      t0 = dnext1 + t0;
      float dx2 = t1 * saved5 * (1 - saved5);
      t1 = t0 * prev1;
      float dprev1 = t0 * saved4;
      float dx0 = t1 * saved4 * (1 - saved4);
      t1 = t0 * saved3;
      t0 = t0 * saved2;
      float dx3 = t0 * (1 - saved3 * saved3);
      float dx1 = t1 * saved2 * (1 - saved2);
      t1 = dnext2 * saved1;
      t0 = 1 - saved0;
      t0 = dnext2 * t0;
      t1 = -t1;
      float t2 = dnext2 * prev2;
      t2 = t1 + t2;
      float dprev2 = dnext2 * saved0;
      float dx5 = t0 * (1 - saved1 * saved1);
      float dx4 = t2 * saved0 * (1 - saved0);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)2 * hidden + u], dx2);
      narrow(g_dprev1[(long long)(n) * ld_g_dprev1 + (long long)0 * hidden + u], dprev1);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)0 * hidden + u], dx0);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)3 * hidden + u], dx3);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)1 * hidden + u], dx1);
      narrow(g_dprev2[(long long)(n) * ld_g_dprev2 + (long long)0 * hidden + u], dprev2);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)5 * hidden + u], dx5);
      narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)4 * hidden + u], dx4);
    }
    if (!barrier(counter, steps - t, word, status)) return;
    for (int part = 0; part < batch; part += chunk) {
      const int count = min(chunk, batch - part);
      products<ROWS, SAMPLES>(weights, rows, length, g_dx + ((long long)t * batch + part) * ld_g_dx, ld_g_dx, count, sums, chunk);
      __syncthreads();
      for (int i = threadIdx.x; i < count * mine; i += blockDim.x) {
        const int n = part + i / mine, u = begin + i % mine;
        float sum = sums[i % mine * chunk + i / mine];
        narrow(g_dnext2[(long long)(n) * ld_g_dnext2 + (long long)0 * hidden + u], widen(g_dnext2[(long long)(n) * ld_g_dnext2 + (long long)0 * hidden + u]) + sum);
      }
      __syncthreads();
    }
  }
  finish(counter, steps);
}
