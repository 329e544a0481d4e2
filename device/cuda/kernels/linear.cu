// Linear recurrences: their steps composed to one, and what their kernels share.

// Activations in a few operations, off by a few units in the last place of 1.
__device__ __forceinline__ float quick_sigmoid(float v) { return reciprocal(1 + exp2_quick(-1.4426950409f * v)); }
__device__ __forceinline__ float quick_tanh(float v) { return 2 * quick_sigmoid(2 * v) - 1; }

// Steps of the recurrence as one: they make factor·h + add of a state h.
struct linear { float factor, add; };

__device__ __forceinline__ linear then(linear first, linear second) {
  linear both;
  both.factor = first.factor * second.factor;
  both.add = second.factor * first.add + second.add;
  return both;
}

__device__ __forceinline__ float after(linear l, float state) { return l.factor * state + l.add; }

// Several are those of a thread, moved in pieces of 16 bytes.
struct __align__(N > 1 ? 16 : 8) several { linear of[N]; };

// identity composes nothing.
__device__ __forceinline__ several identity() {
  several p;
#pragma unroll
  for (int i = 0; i < N; i++) p.of[i].factor = 1, p.of[i].add = 0;
  return p;
}

__device__ __forceinline__ several then(const several& first, const several& second) {
  several both;
#pragma unroll
  for (int i = 0; i < N; i++) both.of[i] = then(first.of[i], second.of[i]);
  return both;
}

// A patience bounds a wait: it ends after a second, or once another block has
// given up.
struct patience {
  unsigned looks = 0;
  long long start = 0;
  __device__ __forceinline__ bool over(unsigned* trouble) {
    pause();
    if (++looks % 1024) return false;
    if (start == 0) start = clock64();
    if (get_acquire(trouble)) return true;
    if (clock64() - start < 2000000000ll) return false;
    *trouble = STUCK;
    return true;
  }
};

// A word holds a number and the run that it is of.
__device__ __forceinline__ word tagged(float v, unsigned run) { return (word)run << 32 | __float_as_uint(v); }
__device__ __forceinline__ bool of(word w, unsigned run) { return (unsigned)(w >> 32) == run; }
__device__ __forceinline__ float number(word w) { return __uint_as_float((unsigned)w); }
