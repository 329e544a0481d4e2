#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_STACK
#include "sample/stack.cuh"
#endif
// Stacked layers over all steps, as one kernel. Each layer has blocks of its own, whose weights,
// both for the layer's own h and for that of the layer beneath, stay on chip. While a layer runs a
// step, the layer beneath runs the next. Products are on tensor cores. h travels as in mma_poll.cu,
// to the blocks of its layer and to those of the layer above. A block has BAND units. SPLIT warps
// multiply, each with a slice of the columns. CELLS warps add their sums and run the cell, so both
// go on at the same time. A group with more than SAMPLES sequences takes turns with PARTS of them.
// For each part, in a step:
//
//   wait      until the warp's slice of the h beneath has come
//   product   by it
//   come      until the warp's slice of the layer's own previous h has come
//   again     product by that
//   leave     sums in shared memory, in one of PLACES
//   cell      the other warps run it and write h to memory
//
// h of a layer stays in memory for DEPTH steps. The layer above counts its steps from time to time,
// and the layer beneath checks that they suffice.
constexpr int PRODUCERS = SPLIT * 32, EIGHTS = SAMPLES / 8;
constexpr int LINES = CHUNKS * SPLIT;                       // pieces of 64 bytes of the columns, rounded up
constexpr int COUNTED = 4;                                  // steps from count to count
constexpr unsigned FREE_BITS = 0x40004000;

// For each group, and for either kind of words: the number of its latest exchange; barrier state;
// and, for each layer, the steps that those above have counted, and its h,
// [DEPTH][LINES][SEQUENCES][16].
constexpr int HEAD = 32, COUNTS = 32;
__device__ constexpr int words_of(bool phased) { return LINES * SEQUENCES * 16 * (phased ? 1 : 2); } // words of 32 bits of a step's h
__device__ constexpr long long room_of(bool phased) { return HEAD + LAYERS * (COUNTS + DEPTH * (long long)words_of(phased)); }
__device__ __forceinline__ unsigned* room(unsigned* control, bool phased) {
  return control + 64 + blockIdx.x / (BLOCKS * LAYERS) * ((BOUNDED ? room_of(true) : 0) + (BOUNDED != 1 ? room_of(false) : 0)) + (BOUNDED && !phased ? room_of(true) : 0);
}

// into returns the sum to which gate g of the h beneath belongs: that of the gate, or one of its
// own if the cell needs it apart.
template <class Cell> __device__ __forceinline__ int into(int g) {
  int at = g;
#pragma unroll
  for (int i = 0; i < Cell::FREE; i++)
    if (Cell::free(i) == g) at = Cell::GATES + i;
  return at;
}

// multiply_into is multiply with TILES of weights, each for the sum that place returns.
template <int CHAINS, int TILES, int SUMS, class Place>
__device__ __forceinline__ void multiply_into(float (*sum)[EIGHTS][SUMS][4], Place place, int chain, const quad (*weights)[2], const quad* in) {
#pragma unroll
  for (int part = 0; part < (EXACT ? 3 : 2); part++)
#pragma unroll
    for (int g = 0; g < TILES; g++)
#pragma unroll
      for (int n = 0; n < EIGHTS; n++)
        if (EXACT) mma_part(fp16(), sum[min(part, CHAINS - 1)][n][place(g)], weights[g][part / 2].v, in[n].v[part % 2], in[n].v[part % 2 + 2]);
        else mma_part(W(), sum[(chain + part) % CHAINS][n][place(g)], weights[g][part % 2].v, in[n].v[part * 2 % 4], in[n].v[part * 2 % 4 + 1]);
}

// wide reports whether any layer of the group has a first h beyond ±1. All blocks meet, and say so
// by the sum of both kinds' numbers, which no earlier run used.
template <class Cell> __device__ __forceinline__ bool wide(const Cell& cell, int batch, unsigned* control, unsigned* status) {
  const int rank = blockIdx.x % BLOCKS, begin = blockIdx.x / (BLOCKS * LAYERS) * SEQUENCES;
  unsigned* const at = room(control, true);
  DYNAMIC_SHARED(memory);
  volatile int* const large = (volatile int*)memory;
  if (threadIdx.x == 0) *large = 0;
  __syncthreads();
  const unsigned number = *(volatile unsigned*)at + *(volatile unsigned*)room(control, false) + 1;
  for (int i = threadIdx.x; i < BAND * min(SEQUENCES, batch - begin); i += blockDim.x) {
    float state[Cell::STATES];
    cell.before(begin + i / BAND, min(rank * BAND + i % BAND, Cell::hidden - 1), state);
    if (!(state[Cell::THROUGH] >= -1 && state[Cell::THROUGH] <= 1)) *large = 1;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      if (*large) put_one(at + 2, number);
      add_release(at + 1);
    }
    for (const long long start = clock64(); !__all_sync(0xffffffff, get_acquire(at + 1) >= BLOCKS * LAYERS);)
      if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
        *status = STUCK;
        break;
      }
    if (threadIdx.x == 0) *large = *(volatile unsigned*)(at + 2) == number;
  }
  __syncthreads();
  const bool any = *large;
  __syncthreads();
  return any;
}

template <bool FIRST, bool PHASED, class Cell> __device__ __forceinline__ void stack_layer(const Cell& cell, const W* beneath, int layer, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, SUMS = GATES + Cell::FREE;
  constexpr int WORDS = (HIDDEN + SIDE - 1) / SIDE * SIDE / PAIR; // of a sequence
  constexpr int WIDE = PHASED ? 1 : 2, BUFFER = words_of(PHASED);
  constexpr bool FULL = WORDS == LINES * 16, EVEN = SEQUENCES == SAMPLES * PARTS;
  constexpr int CHAINS = chains(SUMS * EIGHTS), PART = SUMS * SAMPLES * GAP;
  constexpr int EACH = SAMPLES / (ACROSS * CELLS);            // sequences per thread that runs cells
  constexpr int INPUTS = GATES + Cell::FREE, AHEAD = 4;       // turns from reading inputs to their use
  typedef typename Cell::Input Input;

  DYNAMIC_SHARED(memory);
  float* const sums = (float*)memory;                         // [PLACES][SPLIT][PART], used in turns
  quad* const far = (quad*)(sums + PLACES * SPLIT * PART);    // weights in shared memory
  float* const states = (float*)(far + PRODUCERS * 2 * ((CHUNKS - RESIDENT) * GATES + (CHUNKS - NEAR) * TAKES)); // [PARTS][EACH][STATES][CELLS * 32]
  Input* const inputs = (Input*)(states + PARTS * EACH * Cell::STATES * CELLS * 32); // [AHEAD][EACH][INPUTS][CELLS * 32]
  // Barriers of places for sums: for sums that are left there, and for those that have been added.
  // Every thread arrives, since racecheck credits an arrival only to its own thread. See
  // docs/kernels.md, "Why persistent kernels do not deadlock".
  const shared_t left_at = shared_address(inputs + AHEAD * EACH * INPUTS * CELLS * 32), added_at = left_at + 8 * PLACES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PLACES; i++) bar_init(left_at + 8 * i, PRODUCERS), bar_init(added_at + 8 * i, CELLS * 32);
    bar_publish();
  }
  steps = keep(steps, memory);
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int rank = blockIdx.x % BLOCKS, group = blockIdx.x / (BLOCKS * LAYERS), begin = group * SEQUENCES;
  const int total = steps * PARTS;

  unsigned* const latest = room(control, PHASED);
  unsigned* const own = latest + HEAD + LAYERS * COUNTS + layer * DEPTH * BUFFER;
  const unsigned* const under = own - DEPTH * BUFFER;
  unsigned* const counted = latest + HEAD + layer * COUNTS;   // steps of the layer beneath, counted by this layer
  const unsigned* const above = layer < LAYERS - 1 ? counted + COUNTS : counted;
  const unsigned number = keep(*(volatile unsigned*)latest, memory) + DEPTH - 1; // number of h after t steps, minus t
  const unsigned before = keep(*(volatile const unsigned*)above, memory);
  auto pattern = [](unsigned number) { return PHASED ? number / DEPTH % 2 ? FREE_BITS : 0 : number; };
  Clock<CLOCKS> clock;
  bool stuck = false;
  auto wait = [&](shared_t bar, int phase) {
    if (!stuck && !arrived(bar, phase % 2)) {
      *status = STUCK;
      stuck = true;
    }
  };

  if (warp < SPLIT) {
    more_registers<MORE>();
    const int row = lane / 4, four = lane % 4, slice = warp;
    const Beneath<Cell, TAKES> lower = {beneath};
    quad w[RESIDENT > 0 ? RESIDENT : 1][GATES][2], v[NEAR > 0 ? NEAR : 1][TAKES][2];
    quad* const far_lower = far + (CHUNKS - RESIDENT) * GATES * 2 * PRODUCERS;
    take_weights<CHUNKS, RESIDENT, SPLIT, PRODUCERS>(cell, rank * BAND, slice, w, far, status);
    if (!FIRST) take_weights<CHUNKS, NEAR, SPLIT, PRODUCERS>(lower, rank * BAND, slice, v, far_lower, status);

    int part = 0, t = 0;
    // A lane's words of a step's h for a part.
    typedef quad Slice[CHUNKS][EIGHTS][WIDE];
    auto there = [&](int part, int e) { return EVEN || part * SAMPLES + e * 8 + row < SEQUENCES; };
    auto beyond = [&](int i, int j) { return !FULL && ((i * SPLIT + slice) * 4 + four) * 4 + j >= WORDS; };
    auto look = [&](Slice& in, const unsigned* words, unsigned number, int part) {
      const unsigned* const from = words + number % DEPTH * BUFFER + ((slice * SEQUENCES + part * SAMPLES + row) * 16 + four * 4) * WIDE;
#pragma unroll
      for (int i = 0; i < CHUNKS; i++)
#pragma unroll
        for (int e = 0; e < EIGHTS; e++)
#pragma unroll
          for (int k = 0; k < WIDE; k++)
            if (there(part, e)) in[i][e][k] = get_quad(from + ((i * SPLIT * SEQUENCES + e * 8) * 16) * WIDE + k * 4);
    };
    auto come = [&](const Slice& in, unsigned pattern, int part) {
      unsigned wrong = 0;
#pragma unroll
      for (int i = 0; i < CHUNKS; i++)
#pragma unroll
        for (int e = 0; e < EIGHTS; e++)
#pragma unroll
          for (int j = 0; j < 4; j++)
            if (!beyond(i, j) && there(part, e)) wrong |= PHASED ? (in[i][e][0].v[j] ^ pattern) & FREE_BITS : in[i][e][j / 2 % WIDE].v[j % 2 * 2 + 1] ^ pattern;
      return __all_sync(0xffffffff, wrong == 0);
    };
    auto await = [&](Slice& in, const unsigned* words, unsigned number) {
      if (stuck || come(in, pattern(number), part)) return;
      const long long start = clock64();
      do {
        look(in, words, number, part);
        if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
          *status = STUCK;
          stuck = true;
        }
      } while (!stuck && !come(in, pattern(number), part));
    };
    // The first h is the caller's.
    auto first = [&](Slice& in) {
      const int row = fresh(lane / 4), column = fresh(slice * 4 + four); // otherwise addresses would occupy registers in all steps
#pragma unroll
      for (int i = 0; i < CHUNKS; i++)
#pragma unroll
        for (int e = 0; e < EIGHTS; e++)
#pragma unroll
          for (int j = 0; j < 4; j++) {
            const int n = min(begin + part * SAMPLES + e * 8 + row, batch - 1);
            const int k = (i * SPLIT * 4 + column) * FEW + (EXACT ? j / 2 * 2 : j * PAIR);
            float a[Cell::STATES], b[Cell::STATES];
            cell.before(n, FULL ? k : min(k, HIDDEN - 1), a);
            cell.before(n, FULL ? k + 1 : min(k + 1, HIDDEN - 1), b);
            const float own = a[Cell::THROUGH], other = k + 1 < HIDDEN ? b[Cell::THROUGH] : 0;
            in[i][e][PHASED ? 0 : j / 2 % WIDE].v[PHASED ? j : j % 2 * 2] = EXACT && j % 2 ? word_of(other, own, true, status) : word_of(own, other, false, status);
          }
    };
    auto factors = [&](quad* b, const Slice& in, int i, unsigned mask) {
#pragma unroll
      for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const unsigned word = in[i][e][PHASED ? 0 : j / 2 % WIDE].v[PHASED ? j : j % 2 * 2];
          b[e].v[j] = beyond(i, j) || !there(part, e) ? 0 : word & mask;
        }
    };

    Slice lower_h, own_h;
    if (!FIRST) look(lower_h, under, number + 1, 0);
    for (int q = 0; q < total; q++) {
      const int next_part = PARTS == 1 || part == PARTS - 1 ? 0 : part + 1, next = next_part == 0 ? t + 1 : t;
      float sum[CHAINS][EIGHTS][SUMS][4];
#pragma unroll
      for (int i = 0; i < CHAINS * EIGHTS * SUMS * 4; i++) (&sum[0][0][0][0])[i] = 0;
      if (!FIRST) {
        await(lower_h, under, number + t + 1);
        clock.mark(WAIT, __uint_as_float(lower_h[0][0][0].v[0]));
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
          quad b[EIGHTS], some[TAKES][2];
          factors(b, lower_h, i, PHASED ? ~FREE_BITS : ~0u);
#pragma unroll
          for (int j = 0; j < TAKES * 2 && i >= NEAR; j++) some[j / 2][j % 2] = far_lower[((i - NEAR) * TAKES * 2 + j) * PRODUCERS + tid];
          multiply_into<CHAINS, TAKES>(sum, into<Cell>, 2 * i, i < NEAR ? v[i] : some, b);
        }
        if (q + 1 < total) look(lower_h, under, number + next + 1, next_part);
        clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][SUMS - 1][3]);
      }
      if (t == 0) first(own_h);
      else await(own_h, own, number + t);
      clock.mark(SUM, __uint_as_float(own_h[0][0][0].v[0]));
#pragma unroll
      for (int i = 0; i < CHUNKS; i++) {
        quad b[EIGHTS], some[GATES][2];
        factors(b, own_h, i, PHASED && t > 0 ? ~FREE_BITS : ~0u);
#pragma unroll
        for (int j = 0; j < GATES * 2 && i >= RESIDENT; j++) some[j / 2][j % 2] = far[((i - RESIDENT) * GATES * 2 + j) * PRODUCERS + tid];
        multiply_into<CHAINS, GATES>(sum, [](int g) { return g; }, 2 * i, i < RESIDENT ? w[i] : some, b);
      }
      if (q + 1 < total && next > 0) look(own_h, own, number + next, next_part);
      clock.mark(CELL, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][SUMS - 1][3]);
      if (q >= PLACES) wait(added_at + 8 * (q % PLACES), q / PLACES - 1); // the sums in this place have been added
      put_sums<CHAINS, SAMPLES>(sum, sums + (q % PLACES * SPLIT + slice) * PART, lane);
      bar_arrive(left_at + 8 * (q % PLACES));
      clock.mark(SEND);
      part = next_part, t = next;
    }
  } else {
    fewer_registers<FEWER>();
    const int mine = tid - PRODUCERS, unit = rank * BAND + lane % BAND, u = min(unit, HIDDEN - 1);
    const int sample = mine / 32 % 4 + lane / BAND * 4 + mine / 128 * 8; // and every ACROSS·CELLS-th after it: two of a warp are in different banks
    float bias[GATES], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
    for (int g = 0; g < GATES; g++) bias[g] = cell.bias(g, u);
    cell.constants(u, constants);
    const long long stride = cell.stride(batch);
    // input starts to copy the inputs of turn q to shared memory.
    auto input = [&](int q) {
      const int t = q / PARTS, part = q % PARTS;
#pragma unroll
      for (int e = 0; e < EACH && FIRST; e++) {
        const Input* at = cell.input(0, min(begin + part * SAMPLES + sample + e * ACROSS * CELLS, batch - 1), u) + t * stride;
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
          const int g = i < GATES ? i : Cell::free(i - GATES);
          if (i < GATES && !Cell::owns(g)) continue;
          if (q < total) copy_async<sizeof(Input)>(inputs + ((q % AHEAD * EACH + e) * INPUTS + i) * CELLS * 32 + mine, at + g * HIDDEN);
          if (t + 8 < steps) prefetch(at + 8 * stride + g * HIDDEN);
        }
      }
      if (FIRST) end_async();
    };
    for (int i = 0; i < PARTS * EACH; i++) {
      float state[Cell::STATES];
      cell.before(min(begin + i / EACH * SAMPLES + sample + i % EACH * ACROSS * CELLS, batch - 1), u, state);
#pragma unroll
      for (int s = 0; s < Cell::STATES; s++) states[(i * Cell::STATES + s) * CELLS * 32 + mine] = state[s];
    }
    for (int q = 0; q < AHEAD - 1; q++) input(q);

    int part = 0, t = 0;
    for (int q = 0; q < total; q++) {
      if (layer < LAYERS - 1 && part == 0 && (t + 1) % COUNTED == 0 && t + 1 >= DEPTH) {
        const int need = BLOCKS * ((t + 1 - DEPTH) / COUNTED + 1);
        for (const long long start = clock64(); !stuck && !__all_sync(0xffffffff, (int)(*(volatile const unsigned*)above - before) >= need);)
          if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
            *status = STUCK;
            stuck = true;
          }
      }
      float state[EACH][Cell::STATES], saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1], gate[EACH][GATES];
      float* const kept = states + part * EACH * Cell::STATES * CELLS * 32 + mine;
#pragma unroll
      for (int i = 0; i < EACH * Cell::STATES; i++) state[i / Cell::STATES][i % Cell::STATES] = kept[i * CELLS * 32];
      float x[EACH][INPUTS];
      if (FIRST) wait_async<AHEAD - 2>();
#pragma unroll
      for (int i = 0; i < EACH * INPUTS; i++)
        x[i / INPUTS][i % INPUTS] = FIRST && (i % INPUTS >= GATES || Cell::owns(i % INPUTS)) ? widen(inputs[(q % AHEAD * EACH * INPUTS + i) * CELLS * 32 + mine]) : 0;
      wait(left_at + 8 * (q % PLACES), q / PLACES);
      clock.mark(WAIT);
      const float* const left = sums + q % PLACES * SPLIT * PART;
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int n = sample + e * ACROSS * CELLS;
#pragma unroll
        for (int g = 0; g < GATES; g++) gate[e][g] = sum_of<SPLIT, SAMPLES, PART>(x[e][g] + bias[g], left, g, lane % BAND, n);
#pragma unroll
        for (int i = 0; i < Cell::FREE && !FIRST; i++) x[e][GATES + i] = sum_of<SPLIT, SAMPLES, PART>(0, left, GATES + i, lane % BAND, n);
      }
      bar_arrive(added_at + 8 * (q % PLACES));
      if (!FIRST && mine == 0 && part == PARTS - 1 && (t + 1) % COUNTED == 0) atomicAdd(counted, 1u);
      clock.mark(SUM);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int n = part * SAMPLES + sample + e * ACROSS * CELLS;
#pragma unroll
        for (int g = 0; g < GATES; g++) gate[e][g] = Cell::early(g, gate[e][g]);
        Cell::rest(gate[e], x[e] + GATES, constants, state[e], saved[e]);
        const float fresh = unit < HIDDEN ? state[e][Cell::THROUGH] : 0, other = __shfl_xor_sync(0xffffffff, fresh, 1);
        const unsigned word = word_of(fresh, other, lane % 2, status);
        if (lane % PAIR == 0 && unit < WORDS * PAIR && n < SEQUENCES) {
          const int k = unit / PAIR;
          unsigned* const to = own + (number + t + 1) % DEPTH * BUFFER + ((k / 16 * SEQUENCES + n) * 16 + k % 16) * WIDE;
          if (PHASED) put_one(to, word & ~FREE_BITS | pattern(number + t + 1));
          else put_word(to, __uint_as_float(word), number + t + 1);
        }
      }
      clock.mark(CELL);

      // Nobody waits for what follows.
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int n = begin + part * SAMPLES + sample + e * ACROSS * CELLS;
#pragma unroll
        for (int s = 0; s < Cell::STATES; s++) kept[(e * Cell::STATES + s) * CELLS * 32] = state[e][s];
        if (unit < HIDDEN && n < batch && n < begin + SEQUENCES)
#pragma unroll
          for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + n, unit), Cell::result(r, state[e], saved[e]));
      }
      part = PARTS == 1 || part == PARTS - 1 ? 0 : part + 1, t += part == 0;
      input(q + AHEAD - 1);
      clock.mark(REST);
    }
    // The last layer has what all blocks put after they had read the number.
    if (layer == LAYERS - 1 && rank == 0 && mine == 0) {
      *latest = number - DEPTH + 1 + steps;
      if (BOUNDED == 2) room(control, true)[1] = 0;
    }
  }
  if (CLOCKS && group == 0 && rank == 0 && (tid == 0 || tid == PRODUCERS)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}

template <bool FIRST, class Cell> __device__ __forceinline__ void stack_layer(const Cell& cell, const W* beneath, int layer, int steps, int batch, unsigned* control, unsigned* status) {
  if constexpr (BOUNDED == 2)
    if (wide(cell, batch, control, status)) return stack_layer<FIRST, false>(cell, beneath, layer, steps, batch, control, status);
  stack_layer<FIRST, BOUNDED != 0>(cell, beneath, layer, steps, batch, control, status);
}
#ifdef SAMPLE_STACK
#include "sample/stack_entry.cuh"
#endif
