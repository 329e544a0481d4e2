#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/ctcloss.cuh"
#endif
// Place s of a transcript is label s/2 if s is odd, and else a blank. A forward variable is the
// probability of all ways to reach a place at a step, a backward variable that of all ways on from
// there. A number of theirs is m·2^e, with m from 1 to 2, or 0. Products of thousands of
// probabilities are no smaller than it can hold, and m keeps the precision that a logarithm loses.
struct wide { float m; int e; };
enum { LEAST = -(1 << 30) }; // the exponent of 0
__device__ __forceinline__ wide zero() { return {0, LEAST}; }

// scaled returns m·2^e. m is 0, or no subnormal number.
__device__ __forceinline__ wide scaled(float m, int e) {
  if (m == 0) return zero();
  if (!(m < 3.4e38f)) return {m, 0};
  const unsigned bits = __float_as_uint(m);
  e += (int)(bits >> 23) - 127;
  if (e <= LEAST) return zero();
  return {__uint_as_float((bits & 0x7fffff) | 127 << 23), e};
}

// power returns 2^e. Below the smallest normal number it is 0.
__device__ __forceinline__ float power(int e) { return e > -127 ? __uint_as_float((unsigned)(e + 127) << 23) : 0; }

__device__ __forceinline__ wide product(wide a, wide b) { return scaled(a.m * b.m, a.e + b.e); }

// sum leaves m below 6.
__device__ __forceinline__ wide sum(wide a, wide b, wide c) {
  const int e = max(a.e, max(b.e, c.e));
  return {a.m * power(a.e - e) + b.m * power(b.e - e) + c.m * power(c.e - e), e};
}

// share returns exp(below) · inverse, for below ≤ 0.
__device__ __forceinline__ wide share(float below, float inverse) {
  if (below < -90000) return {0 * inverse, LEAST};
  const int k = (int)(below * 1.44269504f - 0.5f); // the remainder is exact but for its last bits
  return scaled(expf(fmaf(k, 2.12194440e-4f, fmaf(k, -0.693359375f, below))) * inverse, k);
}

__device__ __forceinline__ void put(float* to, wide v) { to[0] = v.m, to[1] = __uint_as_float((unsigned)v.e); }
__device__ __forceinline__ wide get(const float* from) { return {from[0], (int)__float_as_uint(from[1])}; }

// in_warp combines one value of each lane of a warp.
template <class F> __device__ __forceinline__ float in_warp(float v, F f) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) v = f(v, __shfl_xor_sync(0xffffffff, v, i));
  return v;
}

// A sequence's rows: logits, probabilities or gradients, and scratch. In scratch are the largest logit,
// 1 ÷ the softmax's sum, and two words for each place.
struct sequence {
  const LOGITS* logits;
  PROB* prob;
  float* scratch;
  long long ldlogits, ldprob, ldscratch; // from step to step
  int steps, classes, labels;
  int* transcript;
  int* equal; // of each label the next equal one (0: none), or -1 - this if there is an earlier one
  __device__ const LOGITS* row(int t) const { return logits + t * ldlogits; }
  __device__ float* kept(int t) const { return scratch + t * ldscratch; }
};

// read_transcript sets the number of labels. It is -1 if one of them is no class.
__device__ __forceinline__ void read_transcript(sequence& q, const LABEL* labels, int most) {
  for (int u = threadIdx.x; u < most; u += WAYS * THREADS) q.transcript[u] = row_of(widen(labels[u]), q.classes);
  __syncthreads();
  int n = 0;
  bool right = true;
  for (; n < most && q.transcript[n] != 0; n++) right = right && q.transcript[n] > 0;
  q.labels = right ? n : -1;
  for (int u = threadIdx.x; u < q.labels; u += WAYS * THREADS) {
    int next = u + 1, before = u - 1;
    while (next < n && q.transcript[next] != q.transcript[u]) next++;
    while (before >= 0 && q.transcript[before] != q.transcript[u]) before--;
    if (next == n) next = 0;
    q.equal[u] = before < 0 ? next : -1 - next;
  }
}

// softmax finds the largest logit and the sum of each step, a warp per step.
__device__ __forceinline__ void softmax(const sequence& q) {
  const int lane = threadIdx.x % 32;
  for (int t = threadIdx.x / 32; t < q.steps; t += WAYS * THREADS / 32) {
    const LOGITS* from = q.row(t);
    float top = widen(from[0]), sum = 0;
    for (int j = lane; j < q.classes; j += 32) top = fmaxf(top, widen(from[j]));
    top = in_warp(top, [](float a, float b) { return fmaxf(a, b); });
    for (int j = lane; j < q.classes; j += 32) sum += expf(widen(from[j]) - top);
    sum = in_warp(sum, [](float a, float b) { return a + b; });
    if (lane == 0) q.kept(t)[0] = top, q.kept(t)[1] = 1 / sum;
  }
}

// recur returns p(transcript). The first THREADS threads advance the forward variables from the first
// step on. The others do so with the backward variables from the last step back, of which place r is
// the r-th from the end. A thread has EACH places. places is [2][WAYS][all]: those of two turns.
//
// Who reaches a step first keeps its variables in scratch. Who comes second puts their products
// there. If the number of steps is odd, the backward variables begin one turn later, so that both
// ways never reach a step in the same turn.
__device__ __forceinline__ wide recur(const sequence& q, wide* places, int all) {
  const int back = threadIdx.x / THREADS, mine = threadIdx.x % THREADS, late = WAYS == 2 ? q.steps % 2 : 0, size = 2 * q.labels + 1;
  auto step = [&](int turn) { return back ? q.steps - 1 - turn + late : turn; };
  auto label = [&](int r) { return q.transcript[back ? q.labels - 1 - r / 2 : r / 2]; };
  float logit[EACH], top, inverse; // of the next turn: their latency is hidden behind this one
  auto fetch = [&](int turn) {
    const int t = step(turn);
    if (t < 0 || t >= q.steps) return;
    top = q.kept(t)[0], inverse = q.kept(t)[1];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int r = mine + k * THREADS;
      if (r < size) logit[k] = widen(q.row(t)[r % 2 ? label(r) : 0]);
    }
  };
  fetch(0);
  for (int turn = 0; turn < q.steps + late; turn++) {
    const int t = step(turn);
    const bool second = WAYS == 2 && 2 * turn > q.steps - 1 + late;
    const wide* from = places + (turn % 2 * WAYS + back) * all;
    wide* to = places + ((1 - turn % 2) * WAYS + back) * all;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int r = mine + k * THREADS;
      if (r >= size || t >= q.steps) break;
      float* const place = q.kept(t) + 2 + 2 * (back ? size - 1 - r : r);
      wide other, before = {(float)(r < 2), r < 2 ? 0 : LEAST};
      if (second) other = get(place);
      if (t != (back ? q.steps - 1 : 0)) {
        const bool skips = r % 2 && r > 1 && label(r) != label(r - 2);
        before = sum(from[r], r > 0 ? from[r - 1] : zero(), skips ? from[r - 2] : zero());
      }
      const wide after = product(before, share(logit[k] - top, inverse));
      to[r] = after;
      if (WAYS == 2) put(place, second ? product(before, other) : after);
    }
    fetch(turn + 1);
    __syncthreads();
  }
  const wide* const last = places + q.steps % 2 * WAYS * all;
  return product({1, 0}, sum(last[size - 1], size > 1 ? last[size - 2] : zero(), zero()));
}

// write writes probabilities, or the gradient of scale·loss, a warp per step. What depends on products
// is formed before logits are overwritten. That of a label waits in scratch, at its first place.
__device__ __forceinline__ void write(const sequence& q, wide p, float scale) {
  const int lane = threadIdx.x % 32, size = 2 * q.labels + 1;
  const float each = scale / p.m;
  for (int t = threadIdx.x / 32; t < q.steps; t += WAYS * THREADS / 32) {
    const LOGITS* from = q.row(t);
    PROB* to = q.prob + t * q.ldprob;
    float* const place = q.kept(t) + 2;
    const float top = q.kept(t)[0], inverse = q.kept(t)[1];
    if (WAYS == 1) {
      for (int j = lane; j < q.classes; j += 32) narrow(to[j], expf(widen(from[j]) - top) * inverse);
      continue;
    }
    if (p.m == 0) {
      for (int j = lane; j < q.classes; j += 32) narrow(to[j], 0.0f);
      continue;
    }
    auto prob = [&](int j) { return scale * expf(widen(from[j]) - top) * inverse; };
    auto part = [&](int s) { return each * place[2 * s] * power((int)__float_as_uint(place[2 * s + 1]) - p.e); };
    float blank = 0;
    for (int s = 2 * lane; s < size; s += 64) blank += part(s);
    blank = prob(0) - in_warp(blank, [](float a, float b) { return a + b; });
    for (int u = lane; u < q.labels; u += 32) {
      if (q.equal[u] < 0) continue;
      float sum = part(2 * u + 1);
      for (int v = q.equal[u]; v > 0; v = -1 - q.equal[v]) sum += part(2 * v + 1);
      place[4 * u + 2] = prob(q.transcript[u]) - sum;
    }
    __syncwarp();
    for (int j = lane; j < q.classes; j += 32) narrow(to[j], prob(j));
    __syncwarp();
    if (lane == 0) narrow(to[0], blank);
    for (int u = lane; u < q.labels; u += 32)
      if (q.equal[u] >= 0) narrow(to[q.transcript[u]], place[4 * u + 2]);
  }
}

// ctcloss: loss[b] = -log p(transcript b). prob is the softmax or, with two WAYS, the gradient of
// scale·Σloss. There is one block per sequence.
extern "C" __global__ void __launch_bounds__(WAYS * THREADS)
ctcloss(int batch, int steps, int classes, int most, const LOGITS* logits, int ldlogits, const LABEL* labels, int ldlabels, LOSS* loss, int ldloss,
        PROB* prob, int ldprob, float* scratch, int ldscratch, float scale, unsigned* status) {
  DYNAMIC_SHARED(memory);
  const int all = 2 * most + 1;
  const long long b = blockIdx.x;
  wide* const places = (wide*)memory;
  int* const transcript = (int*)(places + 2 * WAYS * all);
  sequence q = {logits + b * ldlogits, prob + b * ldprob, scratch + b * ldscratch, (long long)batch * ldlogits, (long long)batch * ldprob,
                (long long)batch * ldscratch, steps, classes, 0, transcript, transcript + most};
  read_transcript(q, labels + b * ldlabels, most);
  if (q.labels < 0) {
    if (threadIdx.x == 0) *status = BAD_INDEX;
    return;
  }
  softmax(q);
  __syncthreads();
  const wide p = recur(q, places, all);
  if (threadIdx.x == 0) narrow(loss[b * ldloss], fmaf(-0.693147181f, p.e, -logf(p.m)));
  write(q, p, scale);
}
