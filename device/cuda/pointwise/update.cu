#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/update.cuh"
#endif
// A segment is count contiguous elements of a parameter and of its copy, gradient and moments.
// Blocks from first on change it, one chunk each. Unless tail is 0, the largest element goes to an
// absmax cache (scales.cu), tail·TAIL bytes into the program's memory.
struct segment {
  PARAM* param;
  COPY* copy;
  const GRAD* grad;
  FIRST* mean;
  SECOND* square;
  long long count;
  unsigned first, tail;
};
struct segments { segment of[SEGMENTS]; };

// change: Update.Step of package schedule for N elements from place i on. MOMENTS is their number;
// two make it Adam. With NESTEROV, SGD with one moment looks ahead. With COPIES, copy receives the new
// parameter. With LARGEST, largest also covers these elements.
template <int N>
__device__ __forceinline__ void change(float& largest, const segment& s, long long i, float scale, float rate, float root, float beta1, float beta2, float epsilon) {
  float w[N], step[N];
  load<N>(w, s.param + i);
  if (scale != 0) {
    load<N>(step, s.grad + i);
#pragma unroll
    for (int k = 0; k < N; k++) step[k] *= scale;
#if MOMENTS > 0
    float mean[N];
    load<N>(mean, s.mean + i);
#pragma unroll
    for (int k = 0; k < N; k++) mean[k] = beta1 * mean[k] + (MOMENTS == 1 ? 1 : 1 - beta1) * step[k];
    store<N>(s.mean + i, mean);
#endif
#if MOMENTS == 1
#pragma unroll
    for (int k = 0; k < N; k++) step[k] = NESTEROV ? step[k] + beta1 * mean[k] : mean[k];
#elif MOMENTS == 2
    float square[N];
    load<N>(square, s.square + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      square[k] = beta2 * square[k] + (1 - beta2) * step[k] * step[k];
      step[k] = mean[k] / (sqrtf(square[k]) * root + epsilon);
    }
    store<N>(s.square + i, square);
#endif
#pragma unroll
    for (int k = 0; k < N; k++) w[k] -= rate * step[k];
    store<N>(s.param + i, w);
  }
#if COPIES
  store<N>(s.copy + i, w);
#endif
#if LARGEST
#pragma unroll
  for (int k = 0; k < N; k++) largest = larger(largest, w[k]);
#endif
}

// update changes all segments, V elements at once.
extern "C" __global__ void __launch_bounds__(256) update(int n, int chunk, char* memory, const RATES* rates, const SQUARES* squares, int parts, float beta1, float beta2, float epsilon, const __grid_constant__ segments all) {
  begin_next();
  wait_previous();
  const float scale = gradient_scale(rates, squares, parts), rate = widen(rates[0]), root = widen(rates[1]);
  int at = 0;
  for (int after = n; after - at > 1;) {
    const int middle = (at + after) / 2;
    if (all.of[middle].first <= blockIdx.x) at = middle; else after = middle;
  }
  const segment& s = all.of[at];
  const long long from = (blockIdx.x - s.first) * chunk, to = min(from + chunk, s.count);
  float largest = 0;
  for (long long i = from + V * threadIdx.x; i < to; i += V * 256)
    if (i + V <= to) change<V>(largest, s, i, scale, rate, root, beta1, beta2, epsilon);
    else for (long long j = i; j < to; j++) change<1>(largest, s, j, scale, rate, root, beta1, beta2, epsilon);
#if LARGEST
  if (s.tail) tell_largest(reinterpret_cast<float*>(memory + (long long)s.tail * TAIL), blockIdx.x - s.first, (s.count + chunk - 1) / chunk, largest);
#endif
}
