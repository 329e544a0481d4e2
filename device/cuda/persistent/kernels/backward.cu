#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD
#include "sample/backward.cuh"
#endif
// The gradient of a layer over all steps in a group of blocks, from the last step to the first. A
// block keeps the weights that it has in the forward pass, those of its units' gates. So it needs
// no other block's gradients: it multiplies its own by them, which gives a part of the gradient of
// every unit's state. The parts are summed where the unit is. A group has CLUSTERS clusters of
// CLUSTER blocks each; either may be 1. A step:
//
//   wait      until the parts of all blocks of the cluster have come. A block has parts for
//             its own units, and for the units of blocks of its rank in other clusters
//   sum       the parts, in the order of blocks. The sums for other clusters go to memory;
//             their blocks add up the sums of all clusters in order
//   cell      the part that waited for this; gradients of the units' gates go to shared
//             memory
//   product   of these gradients by the weights, for all SAMPLES sequences; see Product
//   push      the parts to the blocks of the cluster
//   prepare   the part of the next step's cell that depends only on the forward pass
//
// SAME lanes share the last sum and have the same result.
//
// See simt.cu for groups and recurrence.cu for words in memory. Two buffers of parts are enough: a
// block sends those of exchange e + 2 once it has all of e + 1, and each block sends those after it
// has summed e. A block may have all parts for itself while some of its warps still multiply for
// others. So there are two buffers of gradients, too, if no barrier comes between.

// total sums every EVERY-th of N values that are apart from each other, four at a time.
template <int N, int EVERY = 1> __device__ __forceinline__ float total(const float* from, int apart, int first = 0) {
  constexpr int MINE = (N + EVERY - 1) / EVERY;
  float sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < MINE; i++)
    if (i * EVERY + first < N) sum[i % 4] += from[(i * EVERY + first) * apart];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class Cell> __device__ __forceinline__ void back_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  typedef Product<Cell> P;
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, THREADS = WARPS * 32;
  constexpr int GROUP = CLUSTERS * CLUSTER, LINE = CLUSTERS * UNITS; // blocks, and units whose parts a block sums
  constexpr int VALUES = UNITS * SAMPLES, SHARE = LINE * SAMPLES;
  constexpr bool PUSHED = CLUSTER > 1, ALONE = GROUP == 1;
  constexpr int PARTS = PUSHED || ALONE ? CLUSTER * SHARE : 0, OTHER = SPREAD || ALONE ? 0 : P::GRADS - P::SCALES;
  constexpr int GAP = CLUSTERS | 1, COME = SPREAD ? (VALUES * GAP + 3) / 4 * 4 : 0;  // neighbours are in different banks
  constexpr int ACROSS = THREADS / SAME, EACH = (VALUES + ACROSS - 1) / ACROSS;

  DYNAMIC_SHARED(memory);
  float* const parts = (float*)(memory + 128);  // [2][CLUSTER][SHARE]
  float* const come = parts + 2 * PARTS;        // [VALUES][GAP]
  unsigned char* const grads = (unsigned char*)(come + COME);
  const shared_t base = shared_address(memory), bar = base;
  const int tid = threadIdx.x;
  const int block = blockIdx.x % GROUP, rank = block % CLUSTER, group = blockIdx.x / GROUP;
  P product(cell, grads + P::GRADS + OTHER, block, status);
  unsigned* const largest = (unsigned*)(grads + P::GRADS - P::SCALES + OTHER);  // [2][SAMPLES], largest of a sequence's gradients

  const int most = min(SAMPLES, batch);  // sequences of the first group
  const int bytes = CLUSTER * LINE * 4 * P::sent(most);
  for (int i = tid; i < 2 * PARTS + COME + (P::GRADS + OTHER) / 4; i += THREADS) ((unsigned*)parts)[i] = 0;
  if (PUSHED) {
    if (tid == 0) {
      bar_init(bar, 1);
      bar_init(bar + 8, 1);
      bar_publish();
      bar_arrive(bar, bytes);
      bar_arrive(bar + 8, bytes);
    }
    __syncthreads();
    cluster_barrier();
  }
  Exchange<SPREAD ? GROUP * SHARE : 2, THREADS> words(control, group);
  // Where a pair of words, of adjacent units, goes.
  constexpr int LOOKS = (SHARE / 2 + THREADS - 1) / THREADS, AT_ONCE = LOOKS < 8 ? LOOKS : 8;
  auto slot_of = [&](int pair) {
    const int u = pair * 2 % UNITS, n = pair / (LINE / 2);
    return n < SAMPLES ? P::place(u, n, UNITS) * GAP + pair / (UNITS / 2) % CLUSTERS : -1;
  };
  int slot[AT_ONCE];
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) slot[k] = SPREAD ? slot_of(tid + k * THREADS) : 0;
  bool stuck = false;
  int turn = 0;
  int e = 0;  // exchanges within the cluster
  for (int begin = group * SAMPLES; begin < batch; begin += SPREAD ? gridDim.x / GROUP * SAMPLES : batch) {
    const int live = min(SAMPLES, batch - begin);
    __syncthreads();
    float state[EACH][Cell::STATES], ready[EACH][Cell::READY];
    float x[2][EACH][Cell::INPUTS];  // alternating: moving values would wait for their reads
    int at[EACH], unit[EACH];  // sequence and unit of this thread's values
    bool some[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int v = tid / SAME + k * ACROSS;
      at[k] = P::sample(v), unit[k] = block * UNITS + P::unit(v);
      some[k] = v < VALUES && unit[k] < HIDDEN && at[k] < live;
      at[k] = min(begin + at[k], batch - 1), unit[k] = min(unit[k], HIDDEN - 1);
      cell.before(at[k], unit[k], state[k]);
      cell.input(steps - 1, batch, at[k], unit[k], x[0][k]);
      Cell::early(x[0][k], ready[k]);
      cell.input(max(0, steps - 2), batch, at[k], unit[k], x[1][k]);
    }

    for (int even = steps - 1; even >= -1; even -= 2)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int t = even - now;
        if (t < -1) break;
        const float* from = parts;
        if (t + 1 < steps) {
          from = parts + e % 2 * PARTS;
          if (ALONE) __syncthreads();
          if (PUSHED) {
            if (!stuck && !arrived(bar + e % 2 * 8, e / 2 % 2)) *status = STUCK, stuck = true;
            if (tid == 0) bar_arrive(bar + e % 2 * 8, bytes);  // for exchange e + 2
            e++;
          }
          if (SPREAD) {
            if (PUSHED) {
              words.next();
              for (int v = tid; v < SHARE; v += THREADS) {
                const int n = P::sample_of(v, LINE), u = P::unit_of(v, LINE);
                if (n >= live) continue;
                words.put(total<CLUSTER>(from + v, SHARE), ((u / UNITS * CLUSTER + rank) * SAMPLES + n) * LINE + block / CLUSTER * UNITS + u % UNITS);
              }
            }
            const int begins = block * SAMPLES * LINE / 2;
#pragma unroll 1
            for (int i = 0; i < LOOKS; i += AT_ONCE) {
              pair_of_words p[AT_ONCE];
              if (!stuck && !words.template await<AT_ONCE>(p, begins + tid + i * THREADS, begins + live * LINE / 2)) *status = STUCK, stuck = true;
#pragma unroll
              for (int k = 0; k < AT_ONCE; k++) {
                const int to = LOOKS == AT_ONCE ? slot[k] : slot_of(tid + (i + k) * THREADS);
                if (to >= 0) come[to] = p[k].value[0], come[to + P::place(1, 0, UNITS) * GAP] = p[k].value[1];
              }
            }
            __syncthreads();
          }
        }
        unsigned char* const mine = grads + (t & 1) * OTHER;
        unsigned* const most_of = largest + (P::SCALED ? turn++ % 2 * SAMPLES : 0);
        float kept[EACH][Cell::RESULTS], sent[EACH][GATES];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
          const int v = tid / SAME + k * ACROSS;
          float z = 0;
          if (t + 1 < steps) {
            if (!SPREAD) {
              if (v < VALUES) z = total<CLUSTER>(from + v, SHARE);
            } else {
              if (v < VALUES) z = total<CLUSTERS, SAME>(come + v * GAP, 1, tid % SAME);
#pragma unroll
              for (int m = SAME / 2; m > 0; m /= 2) z += __shfl_xor_sync(0xffffffff, z, m);
            }
          }
          state[k][Cell::THROUGH] += z;
          if (t < 0) {
            if (some[k] && tid % SAME == 0) cell.after(at[k], unit[k], state[k]);
            continue;
          }
          Cell::rest(ready[k], state[k], sent[k], kept[k]);
          if (P::SCALED && some[k] && tid % SAME == 0) {
            float all = 0;
#pragma unroll
            for (int g = 0; g < GATES; g++) all = fmaxf(all, fabsf(sent[k][g]));
            atomicMax(most_of + P::sample(v), __float_as_uint(all));
          }
        }
        if (P::SCALED) {
          __syncthreads();
          if (tid < SAMPLES) largest[turn % 2 * SAMPLES + tid] = 0;  // for the next step
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
          const int v = tid / SAME + k * ACROSS;
          const float scale = P::SCALED && v < VALUES ? P::scale(most_of[P::sample(v)], false) : 1;
          if (t >= 0 && v < VALUES && tid % SAME == 0)
#pragma unroll
            for (int g = 0; g < GATES; g++) P::set(mine, g, v, some[k] ? sent[k][g] * scale : 0);
        }
        if (t < 0) break;
        __syncthreads();

        if (SPREAD && !PUSHED) words.next();
        product.multiply(mine, most_of, [&](int to, int n, const float* sum) {  // parts of adjacent units and sequences
          const int owner = to / UNITS, local = to % UNITS;
          if (owner >= GROUP || n >= most) return;
          if (PUSHED) {
            const shared_t there = remote(base, owner % CLUSTER);
            push<P::SENT>(there + 128 + (e % 2 * PARTS + rank * SHARE + P::place(owner / CLUSTER * UNITS + local, n, LINE)) * 4, sum, there + e % 2 * 8);
          } else if (ALONE) {
            store<P::SENT>(parts + P::place(local, n, LINE), sum);
          } else {
#pragma unroll
            for (int q = 0; q < P::SENT; q++) {
              const int to = (owner * SAMPLES + n + P::sample(q)) * LINE + block * UNITS + local + P::unit(q), other = q + P::place(1, 0, UNITS);
              if (n + P::sample(q) >= live) continue;
              if (P::SENT <= P::place(1, 0, UNITS)) words.put(sum[q], to);
              else if (P::unit(q) % 2 == 0) words.put_pair(sum[q], sum[other < P::SENT ? other : q], to);
            }
          }
        });

        // Nobody waits for what follows.
#pragma unroll
        for (int k = 0; k < EACH; k++) {
          if (some[k] && tid % SAME == 0) cell.store(t, batch, at[k], unit[k], kept[k]);
          Cell::early(x[1 - now][k], ready[k]);
          if (t > 1) cell.input(t - 2, batch, at[k], unit[k], x[now][k]);
        }
      }
  }
  const int together = gridDim.x / GROUP * SAMPLES;
  if (SPREAD) words.finish((batch + together - 1) / together * steps);
  if (PUSHED) cluster_barrier();
}
#ifdef SAMPLE_BACKWARD
#include "sample/backward_entry.cuh"
#endif
