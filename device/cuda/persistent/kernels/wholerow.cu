#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_WHOLEROW
#include "sample/wholerow.cuh"
#endif
// A layer over all steps in clusters of blocks, with products on tensor cores, whose warps multiply
// whole rows. A warp has four units with all of their three or four gates, which fill a tile of 16
// rows, and all columns. No sum passes between warps, so a block's warps never wait for each other.
// Each waits for h, multiplies, runs its cells and sends their h to all blocks of the cluster,
// whose barriers count the bytes. Two buffers of h are enough, as in simt.cu.
//
// Up to eight sequences are the columns of a product. With EXACT, weights and h are fp32 numbers as
// two halves (recurrence.cu), of up to four sequences. The high and low halves of a sequence are
// two columns, so two products do what three do elsewhere. Columns without a sequence repeat
// others. Their lanes run the same cells, and share the sending and writing.
//
// A lane's number is 8u + 4p + q. Its rows are gates 2p and 2p + 1 of unit u. Its columns are 2q
// and 2q + 1: two sequences, or the parts of one. The lane with the other p has the other gates.

// A lane's part of a tile of a sequence's h, or of one half of it.
struct __align__(8) columns { unsigned v[2]; };

template <class Cell> __device__ __forceinline__ void wholerow_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, TILES = (HIDDEN + 15) / 16, FOURS = (HIDDEN + 3) / 4;
  constexpr int WARPS = UNITS / 4, THREADS = WARPS * 32, PARTS = EXACT ? 2 : 1;
  constexpr int WIDE = EXACT ? SEQUENCES : (SEQUENCES + 1) / 2, PAIRS = WIDE > 2 ? 4 : WIDE; // pairs of different columns
  constexpr int PIECE = 8 * PARTS, FOUR = 16 * PAIRS;    // bytes of four units' h: of a sequence, high parts first, and of all
  constexpr int BUFFER = 4 * TILES * FOUR;
  constexpr int CHAINS = EXACT ? 3 : 4;                  // independent sums, which hide the latency of products
  constexpr int SAME = 4 / PAIRS, COPIES = PARTS * SAME; // lanes with the same sums, and with the same state
  constexpr int PEERS = 2 * SAME, SENDS = (CLUSTER + PEERS - 1) / PEERS; // blocks that a warp sends to at a time
  static_assert(GATES == 3 || GATES == 4, "rows of a unit");

  DYNAMIC_SHARED(memory);
  unsigned char* const h = memory + 128;                 // [2][4 · TILES][PIECE of each sequence]
  const shared_t base = shared_address(memory), bar = base;
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, u = lane / 8, p = lane / 4 % 2, q = lane % 4;
  const int rank = blockIdx.x % CLUSTER, group = blockIdx.x / CLUSTER, four = rank * WARPS + warp, unit = four * 4 + u, some = min(unit, HIDDEN - 1);
  // place is where a sequence's piece begins in a buffer, such that lanes read side by side from
  // different banks.
  auto place = [](int four, int n) { return four * FOUR + (n ^ (PAIRS == 4 ? four / 2 % 2 * (4 / PARTS) : 0)) * PIECE; };

  // Of each tile of 16 columns a lane has four adjacent columns, of either row.
  quad w[TILES][PARTS];
  constexpr int MANY = 8;  // tiles whose weights are in flight at a time
#pragma unroll
  for (int first = 0; first < TILES; first += MANY) {
    float v[MANY][2][4];
#pragma unroll
    for (int j = 0; j < MANY; j++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int k = (first + j) * 16 + q * 4, g = 2 * p + r;
        const bool there = first + j < TILES && g < GATES && unit < HIDDEN;
        const W* const all = cell.weights(min(g, GATES - 1));
        if (ORDERED && HIDDEN % 4 == 0 && there && k < HIDDEN) load<4>(v[j][r], all + (long long)unit * HIDDEN + k);
        else
#pragma unroll
          for (int c = 0; c < 4; c++) v[j][r][c] = there && k + c < HIDDEN ? widen(all[ORDERED ? (long long)unit * HIDDEN + k + c : (long long)(k + c) * HIDDEN + unit]) : 0;
      }
#pragma unroll
    for (int j = 0; j < MANY; j++)
#pragma unroll
      for (int i = 0; i < 4; i++)  // two columns of either row, then the next two
        if (first + j < TILES) {
          const float a = v[j][i % 2][i / 2 * 2], b = v[j][i % 2][i / 2 * 2 + 1];
#pragma unroll
          for (int low = 0; low < PARTS; low++) w[first + j][low].v[i] = EXACT ? half_of(a, low, status) | half_of(b, low, status) << 16 : word_of(a, b, false, status);
        }
  }
  settle(&w[0][0].v[0], TILES * 4 * PARTS);

  for (int i = tid; i < 2 * BUFFER / 4; i += THREADS) ((unsigned*)h)[i] = 0;
  const int peer = u % 2 * SAME + q / PAIRS, copy = EXACT ? q / PAIRS * 2 + p : q / PAIRS;
  shared_t to[SENDS];
#pragma unroll
  for (int i = 0; i < SENDS; i++) to[i] = remote(base, min(peer + i * PEERS, CLUSTER - 1));

  // A lane has a sequence. It has the inputs of its own gates if their functions can be applied
  // before the other gates are known, else of all gates.
  typedef typename Cell::Input Input;
  const int sample = EXACT ? q % PAIRS : q % PAIRS * 2 + p;
  constexpr int MINE = EXACT ? 2 : GATES, INPUTS = MINE + Cell::FREE, AHEAD = 3;
  auto gate_of = [&](int i) { return i >= MINE ? Cell::free(i - MINE) : EXACT ? min(2 * p + i, GATES - 1) : i; };
  Stream<INPUTS, THREADS> stream(h + 2 * BUFFER);
  float bias[MINE], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
  for (int i = 0; i < MINE; i++) bias[i] = cell.bias(gate_of(i), some);
  cell.constants(some, constants);
  bool owns[INPUTS];
#pragma unroll
  for (int i = 0; i < INPUTS; i++) owns[i] = i >= MINE || Cell::owns(gate_of(i));
  const long long stride = cell.stride(batch);
  // Lanes with the same state share its results: each writes every COPIES-th.
  constexpr int ROUNDS = (Cell::RESULTS + COPIES - 1) / COPIES;
  long long apart[ROUNDS];
#pragma unroll
  for (int i = 0; i < ROUNDS; i++) apart[i] = cell.apart(copy + i * COPIES, batch);
  // A warp without a unit sends nothing, and so nobody would wait for it.
  const int last = CLUSTER * WARPS == FOURS || four < FOURS ? steps : 0;
  constexpr int BYTES = FOURS * FOUR;
  bool stuck = false;
  Clock<CLOCKS> clock;
  const int together = gridDim.x / CLUSTER * SEQUENCES;
  for (int begin = group * SEQUENCES; begin < batch; begin += together) {
    const int live = min(SEQUENCES, batch - begin);      // sequences of the group
    __syncthreads();
    if (tid == 0) expect(bar, BYTES, begin >= together);
    for (int i = tid; i < HIDDEN * live; i += THREADS) {
      const int n = i / HIDDEN, k = i % HIDDEN;
      float state[Cell::STATES];
      cell.before(begin + n, k, state);
      unsigned short* const at = (unsigned short*)(h + place(k / 4, n)) + k % 4;
      if (EXACT) at[0] = half_of(state[Cell::THROUGH], false, status), at[4] = half_of(state[Cell::THROUGH], true, status);
      else put_factor(*(W*)at, state[Cell::THROUGH]);
    }
    __syncthreads();
    cluster_barrier();

    const int n = min(begin + sample, batch - 1);
    const bool mine = unit < HIDDEN && sample < live;
    float state[Cell::STATES];
    cell.before(n, some, state);
    const Input* from[INPUTS];
    const float* flag = cell.kept(1, batch, n);
    char* result[ROUNDS];
#pragma unroll
    for (int i = 0; i < INPUTS; i++) from[i] = cell.input(gate_of(i), n, some);
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) result[i] = cell.place(copy + i * COPIES, batch, n, some);
    auto read = [&](int t) {  // after the last step, that step again
#pragma unroll
      for (int i = 0; i < INPUTS; i++) {
        if (i >= MINE && Cell::flag(Cell::free(i - MINE))) {
          stream.read(i, t, flag);
          if (t + 1 < steps) flag += cell.kept_stride(batch);
          continue;
        }
        stream.read(i, t, from[i]);
        if (t + 1 < steps) from[i] += stride;
      }
      stream.end();
    };
#pragma unroll
    for (int t = 0; t < AHEAD; t++) read(t);

    for (int even = 0, phase = 0; even < last; even += 2, phase ^= 1)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int t = even + now, next = 1 - now;
        if (t >= last) break;
        stream.wait();
        float x[INPUTS];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) x[i] = (owns[i] ? stream.get(i, t) : 0) + (i < MINE ? bias[i] : -0.f);
        float sum[PARTS][CHAINS][4];  // by the high parts of weights, and by the low ones
#pragma unroll
        for (int i = 0; i < PARTS * CHAINS * 4; i++) (&sum[0][0][0])[i] = 0;
        if (!stuck && !arrived(bar + 8 * now, phase)) {
          *status = STUCK;
          stuck = true;
        }
        clock.mark(WAIT);
        const int column = lane / 4;
        const unsigned char* const in = h + now * BUFFER + q * FOUR + (PAIRS == 4 ? column ^ q / 2 * 4 : column % (2 * PAIRS)) * 8;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
          const columns b = *(const columns*)(in + j * 4 * FOUR);
#pragma unroll
          for (int low = 0; low < PARTS; low++) {
            if (EXACT) mma_part(fp16(), sum[low][j % CHAINS], w[j][low].v, b.v[0], b.v[1]);
            else mma_part(W(), sum[low][j % CHAINS], w[j][low].v, b.v[0], b.v[1]);
          }
        }
        clock.mark(PRODUCT, sum[0][0][0], sum[PARTS - 1][CHAINS - 1][3]);
#pragma unroll
        for (int i = 0; i < PARTS * 4; i++)
#pragma unroll
          for (int c = 1; c < CHAINS; c++) sum[i / 4][0][i % 4] += sum[i / 4][c][i % 4];
        const float* const z = sum[0][0];
        const float* const rest = sum[PARTS - 1][0];
        auto other = [](float v) { return __shfl_xor_sync(0xffffffff, v, 4); };
        float gate[4], far[2];
        if (EXACT) {  // a gate's function, then the other lane's
          float own[2];
#pragma unroll
          for (int r = 0; r < 2; r++) own[r] = Cell::early(2 * p + r, z[2 * r] + (z[2 * r + 1] + rest[2 * r]) / LOW + x[r]);
#pragma unroll
          for (int r = 0; r < 2; r++) far[r] = other(own[r]);
#pragma unroll
          for (int g = 0; g < 4; g++) gate[g] = g / 2 == p ? own[g % 2] : far[g % 2];
        } else {      // the sums of one of two sequences, then the functions of all gates
          float own[2];
#pragma unroll
          for (int r = 0; r < 2; r++) own[r] = p ? z[2 * r + 1] : z[2 * r], far[r] = other(p ? z[2 * r] : z[2 * r + 1]);
#pragma unroll
          for (int g = 0; g < GATES; g++) gate[g] = Cell::early(g, (g / 2 == p ? own[g % 2] : far[g % 2]) + x[g % MINE]);
        }
        clock.mark(SUM, gate[0], gate[GATES - 1]);
        float saved[Cell::SAVED > 0 ? Cell::SAVED : 1];
        Cell::rest(gate, x + MINE, constants, state, saved);
        const float fresh = unit < HIDDEN ? state[Cell::THROUGH] : 0;
        clock.mark(CELL, fresh);

        // Each lane sends a word with two adjacent units: four bytes per lane arrive earlier than
        // sixteen.
        unsigned word = 0;
        if (EXACT) word = BOUNDED ? halves_of(fresh) : half_of(fresh, false, status) | half_of(fresh, true, status) << 16;
        else put_factor((W&)word, fresh);
        const unsigned beside = __shfl_xor_sync(0xffffffff, word, 8), first = u % 2 ? beside : word, second = u % 2 ? word : beside;
        const float both = __uint_as_float(EXACT && p ? first >> 16 | (second & 0xffff0000) : (first & 0xffff) | second << 16);
        const int at = place(four, sample) + (EXACT ? p * 8 : 0) + u / 2 * 4;
        const bool may = t + 1 < steps;  // nothing may be in flight to a block that has ended
#pragma unroll
        for (int i = 0; i < SENDS; i++) push<1>(may && peer + i * PEERS < CLUSTER, to[i] + 128 + next * BUFFER + at, &both, to[i] + 8 * next);
        clock.mark(SEND);

        // Nobody waits for what follows.
        bar_arrive(tid == 0, bar + 8 * now, BYTES);  // for h(t+2)
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
          if (mine && copy + i * COPIES < Cell::RESULTS) Cell::put(copy + i * COPIES, result[i], Cell::result(copy + i * COPIES, state, saved));
          result[i] += apart[i];
        }
        read(t + AHEAD);
        clock.mark(REST);
      }
    wait_async<0>();  // otherwise reads after the last step may arrive after inputs of the next pass
  }
  cluster_barrier();
  if (CLOCKS && blockIdx.x == 0 && (tid == 0 || tid == THREADS - 32)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}
#ifdef SAMPLE_WHOLEROW
#include "sample/wholerow_entry.cuh"
#endif
