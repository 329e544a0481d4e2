#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_STACK_BULK
#include "sample/stack_bulk.cuh"
#endif
// Stacked layers as in stack.cu, for many sequences. A group's h of SAMPLES sequences lies in
// memory as it will lie in shared memory. Once all blocks have counted their part, the copy engine
// copies it whole; each block of a cluster of two copies half for both. A warpgroup multiplies all
// rows of a block together, Hopper's fastest product; their weights, 16 rows per warp, are in
// registers. Warps have roles, so that all of this goes on at the same time. For a part, in a step:
//
//   lower     a warpgroup multiplies the h beneath and leaves its sums; in the first
//             layer it leaves the inputs instead
//   own       another one multiplies the layer's own previous h, adds those sums, runs the
//             cell and writes h to memory; states are in shared memory
//   copies    one warp copies the h beneath, and one the layer's own
//   counts    a warp tells the other blocks that h is written; that waits for all writes of
//             the block
//   results   a warp writes them, adjacent units together, so that there are few writes to
//             wait for
//
// A group takes turns with PARTS of its sequences, so that the h of one part travels while others
// are multiplied. h of a layer stays in memory for DEPTH steps. The layer above counts its steps
// from time to time, and writers check that they suffice.
constexpr int FOUR = 128, STEPS = BLOCKS;                   // threads of a warpgroup; products, of 16 columns each
constexpr int PIECE = SAMPLES * 32, BYTES = STEPS * PIECE;  // bytes of h, [STEPS][2][SAMPLES / 8][8][8 columns]
constexpr int SHARE = BLOCKS / CLUSTER, COPY = BYTES / CLUSTER; // blocks whose h one block of a cluster copies, and bytes
constexpr int COUNTED = 4;                                  // steps from count to count
constexpr int MINE = SAMPLES / 16;                          // sequences per thread that runs cells, each for two units
constexpr int ROW = BAND + 2;                               // row of states, such that lanes are in different banks

// For each group: the number of its latest step; for each layer, the steps that those above have
// counted; for each layer, part and share, how many blocks have written their h; and each layer's
// h, [DEPTH][PARTS][BYTES].
constexpr long long ROOM = 32 * (1 + LAYERS + LAYERS * PARTS * CLUSTER) + LAYERS * DEPTH * PARTS * (BYTES / 4ll);

// gate_into returns the gate of the h beneath that belongs to a sum: the sum of that gate, or one
// of its own after those if the cell needs it apart; -1: none.
template <class Cell> __device__ __forceinline__ int gate_into(int sum) {
  int gate = sum < TAKES ? sum : -1;
#pragma unroll
  for (int i = 0; i < Cell::FREE; i++) {
    if (Cell::free(i) == sum) gate = -1;
    if (Cell::GATES + i == sum) gate = Cell::free(i);
  }
  return gate;
}

// exchange4 passes value i of four to the lane whose bits BIT and 2·BIT are i. Value i of a lane
// then comes from that lane.
template <int BIT> __device__ __forceinline__ void exchange4(float* v, int lane) {
#pragma unroll
  for (int width = 2; width > 0; width /= 2) {
    const bool upper = lane & width * BIT;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (!(i & width)) {
        const float got = __shfl_xor_sync(0xffffffff, upper ? v[i] : v[i + width], width * BIT);
        if (upper) v[i] = got;
        else v[i + width] = got;
      }
  }
}

// take_rows loads the weights that a warp multiplies, of its four units from first on: gate g of
// two adjacent units per lane, or none.
template <class Weights> __device__ __forceinline__ void take_rows(const Weights& from, int g, int first, unsigned (*w)[4], unsigned* status) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < (STEPS + 1) / 2; i++) {
    quad q[2];
#pragma unroll
    for (int half = 0; half < 2; half++) q[half] = g < 0 ? quad{} : weights_of(from, g, first + lane / 4 % 2 * 2, (i * 4 + lane % 4) * FEW, half, status);
#pragma unroll
    for (int u = 0; u < 2; u++) { // regroup: neighbouring lanes had eight columns each
      float v[4];
#pragma unroll
      for (int p = 0; p < 4; p++) v[p] = __uint_as_float(q[p / 2].v[p % 2 * 2 + u]);
      exchange4<1>(v, lane);
#pragma unroll
      for (int p = 0; p < 4; p++)
        if (i * 2 + p / 2 < STEPS) w[i * 2 + p / 2][p % 2 * 2 + u] = __float_as_uint(v[p]);
    }
  }
}

template <class Cell> __device__ __forceinline__ void put_results(const Cell& cell, int batch, int t, int n, int unit, const float* state, const float* saved) {
#pragma unroll
  for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + n, unit), Cell::result(r, state, saved));
}

template <bool FIRST, class Cell> __device__ __forceinline__ void stack_layer(const Cell& cell, const W* beneath, int layer, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, STATES = Cell::STATES, SUMS = GATES + Cell::FREE;
  constexpr bool SAVES = Cell::SAVED > 0;
  DYNAMIC_SHARED(memory);
  unsigned char* const lower_h = memory;                      // [STAGES][BYTES], or the first layer's inputs
  unsigned char* const own_h = memory + LOWER;                // [OWN][BYTES]
  quad* const sums = (quad*)(own_h + OWN * BYTES);            // [PLACES][SAMPLES / 8][FOUR]
  float* const states = (float*)(sums + PLACES * SAMPLES / 8 * FOUR); // [PARTS][STATES][SAMPLES][ROW]
  unsigned char* const bars = (unsigned char*)(states + PARTS * STATES * SAMPLES * ROW);
  // Barriers. For places of either h: it has come, and it has been multiplied. For parts: h has
  // been written, states are stored, and results are written. For places of sums: they are left,
  // and they have been taken.
  const shared_t full = shared_address(bars), empty = full + 8 * (STAGES + OWN) * CLUSTER, done = empty + 8 * (STAGES + OWN), kept = done + 8 * PARTS, written = kept + 8 * PARTS, left = written + 8 * PARTS, taken = left + 8 * PLACES;
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, role = tid / FOUR;
  const int rank = blockIdx.x % BLOCKS, group = blockIdx.x / (BLOCKS * LAYERS), begin = group * SEQUENCES;
  steps = keep(steps, states);
  const int total = steps * PARTS;

  unsigned* const latest = control + 64 + group * ROOM;
  unsigned* const counted = latest + 32 + layer * 32;         // steps of the layer beneath, counted by this layer
  const unsigned* const above = layer < LAYERS - 1 ? counted + 32 : counted;
  unsigned* const counts = latest + 32 * (1 + LAYERS);
  unsigned char* const all = (unsigned char*)(counts + 32 * LAYERS * PARTS * CLUSTER);
  const unsigned number = keep(*(volatile unsigned*)latest, states);
  const unsigned before = keep(*(volatile const unsigned*)above, states);
  // count_of and image are those of a layer's h after t steps.
  auto count_of = [&](int layer, int part, int share) { return counts + ((layer * PARTS + part) * CLUSTER + share) * 32; };
  auto image = [&](int layer, int t, int part) { return all + (((long long)layer * DEPTH + (number + t) % DEPTH) * PARTS + part) * BYTES; };
  bool stuck = false;
  auto wait = [&](shared_t bar, int phase) {
    if (!stuck && !arrived(bar, phase % 2)) {
      *status = STUCK;
      stuck = true;
    }
  };
  auto wait_count = [&](const unsigned* count, unsigned want) {
    for (const long long start = clock64(); !stuck && !__all_sync(0xffffffff, (int)(get_acquire(count) - want) >= 0);) {
      pause();
      if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
        *status = STUCK;
        stuck = true;
      }
    }
  };

  if (tid == 0) {
    for (int i = 0; i < (STAGES + OWN) * CLUSTER; i++) bar_init(full + 8 * i, 1);
    for (int i = 0; i < STAGES + OWN; i++) bar_init(empty + 8 * i, 4 * CLUSTER);
    for (int i = 0; i < PARTS; i++) bar_init(done + 8 * i, 4), bar_init(kept + 8 * i, FOUR), bar_init(written + 8 * i, 32);
    for (int i = 0; i < PLACES; i++) bar_init(left + 8 * i, FOUR), bar_init(taken + 8 * i, FOUR);
    bar_publish();
  }
  cluster_barrier();

  Clock<CLOCKS> clock;
  const int first = rank * BAND + warp % 4 * 4, mine = tid % FOUR;
  // multiply starts to multiply a stage once it is there. finish waits for the products and tells
  // both blocks.
  auto multiply = [&](float* sum, const unsigned (*w)[4], const unsigned char* h, int stage, int phase) {
    wait(full + 8 * stage * CLUSTER, phase);
    clock.mark(WAIT);
    const matrix m = matrix_at(shared_address(h), PIECE / 2);
    mma_begin();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      if (s > 0 && s % SHARE == 0) wait(full + 8 * (stage * CLUSTER + s / SHARE), phase);
      mma_wide<SAMPLES>(W(), sum, w[s], m, s * PIECE, s > 0);
    }
  };
  auto finish = [&](const float* sum, int stage) {
    mma_end();
    clock.mark(PRODUCT, sum[0], sum[SAMPLES / 2 - 1]);
    if (lane < CLUSTER) bar_arrive_at(remote(empty + 8 * stage, lane));
  };
  if (role == 0) {
    more_registers<MORE>();
    unsigned w[STEPS][4];
    const int sum_of_lane = lane / 8, gate = gate_into<Cell>(sum_of_lane);
    if (!FIRST) take_rows(Beneath<Cell, TAKES>{beneath}, gate, first, w, status);
    const int units = first + lane / 4 % 2 * 2;
    // Inputs of the first layer are copied turns ahead, [AHEAD][SAMPLES][4][16], to where other
    // layers have the h beneath. Gaps let lanes read from different banks.
    typedef typename Cell::Input Input;
    constexpr int FEWEST = 16 / sizeof(Input), UNITS = BAND + FEWEST, INPUTS = 4 * UNITS + FEWEST;
    Input* const inputs = (Input*)lower_h;
    const long long stride = cell.stride(batch);
    auto reads = [&](int sum) { return sum >= GATES ? sum < SUMS : Cell::owns(sum); };
    auto input = [&](int q) {
      const int n = mine / 4, sum = mine % 4, g = gate_into<Cell>(sum);
      if (n < SAMPLES && q < total && reads(sum)) {
        const Input* const from = cell.input(g, min(begin + q % PARTS * SAMPLES + n, batch - 1), rank * BAND) + q / PARTS * stride;
        Input* const to = inputs + (q % AHEAD * SAMPLES + n) * INPUTS + sum * UNITS;
        if (ALIGNED)
#pragma unroll
          for (int u = 0; u < BAND; u += FEWEST) copy_async<16>(to + u, from + u);
        else
          for (int u = 0; u < BAND; u++) to[u] = from[min(u, HIDDEN - 1 - rank * BAND)];
      }
      end_async();
    };
    for (int q = 0; FIRST && q < AHEAD - 1; q++) input(q);
    int stage = 0, phase = 0, part = 0, t = 0;
    for (int q = 0; q < total; q++) {
      float sum[SAMPLES / 2];
      if (FIRST) {
        wait_async<AHEAD - 2>();
        meet_at(15, FOUR);                                    // all have copied theirs, and read the previous turn's
#pragma unroll
        for (int i = 0; i < SAMPLES / 4; i++) {                // two units of a sequence
          const int n = i / 2 * 8 + lane % 4 * 2 + i % 2, at = i / 2 * 4 + i % 2;
          float x[2] = {0, 0};
          if (reads(sum_of_lane)) load<2>(x, inputs + (q % AHEAD * SAMPLES + n) * INPUTS + sum_of_lane * UNITS + units - rank * BAND);
          sum[at] = x[0], sum[at + 2] = x[1];
        }
        input(q + AHEAD - 1);
      } else {
        multiply(sum, w, lower_h + stage * BYTES, stage, phase);
        finish(sum, stage);
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
      if (q >= PLACES) wait(taken + 8 * (q % PLACES), q / PLACES - 1);
      clock.mark(SEND);
#pragma unroll
      for (int i = 0; i < SAMPLES / 8; i++) {
        quad v;
#pragma unroll
        for (int j = 0; j < 4; j++) v.v[j] = __float_as_uint(sum[i * 4 + j]);
        sums[(q % PLACES * SAMPLES / 8 + i) * FOUR + mine] = v;
      }
      bar_arrive(left + 8 * (q % PLACES));
      if (!FIRST && mine == 0 && part == PARTS - 1 && (t + 1) % COUNTED == 0) atomicAdd(counted, 1u);
      clock.mark(REST);
      if (++part == PARTS) part = 0, t++;
    }
  } else if (role == 1) {
    more_registers<MORE>();
    unsigned w[STEPS][4];
    take_rows(cell, lane / 8 < GATES ? lane / 8 : -1, first, w, status);
    // A thread runs the cells of two units, and of one sequence if there are 16, or of two adjacent
    // ones if there are 32.
    const int units = first + lane / 4 % 2 * 2;
    auto sample = [&](int e) { return MINE > 1 ? lane / 8 * 8 + lane % 4 * 2 + e : lane / 16 * 8 + lane % 4 * 2 + lane / 8 % 2; };
    float bias[2][GATES], constants[2][Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
    for (int u = 0; u < 2; u++) {
#pragma unroll
      for (int g = 0; g < GATES; g++) bias[u][g] = cell.bias(g, min(units + u, HIDDEN - 1));
      cell.constants(min(units + u, HIDDEN - 1), constants[u]);
    }
    // put writes h of two units after t steps for the other blocks.
    auto put = [&](int t, int part, int n, float even, float odd) {
      if (units >= HIDDEN) even = 0;
      if (units + 1 >= HIDDEN) odd = 0;
      *(unsigned*)(image(layer, t, part) + units / 8 * (PIECE / 2) + n * 16 + units % 8 * 2) = word_of(even, odd, false, status);
    };
    auto tell = [&](int part) {
      __syncwarp();
      if (lane == 0) bar_arrive(done + 8 * part);
    };
    auto state_at = [&](int part, int s, int e, int u) { return states + ((part * STATES + s) * SAMPLES + sample(e)) * ROW + units - rank * BAND + u; };
    for (int part = 0; part < PARTS; part++) {
#pragma unroll
      for (int e = 0; e < MINE; e++) {
        float state[2][STATES];
#pragma unroll
        for (int u = 0; u < 2; u++) {
          cell.before(min(begin + part * SAMPLES + sample(e), batch - 1), min(units + u, HIDDEN - 1), state[u]);
#pragma unroll
          for (int s = 0; s < STATES; s++) *state_at(part, s, e, u) = state[u][s];
        }
        put(0, part, sample(e), state[0][Cell::THROUGH], state[1][Cell::THROUGH]);
      }
      tell(part);
    }
    int stage = 0, phase = 0, part = 0, t = 0;
    for (int q = 0; q < total; q++) {
      float sum[SAMPLES / 2];
      multiply(sum, w, own_h + stage * BYTES, STAGES + stage, phase);
      finish(sum, STAGES + stage);
      if (++stage == OWN) stage = 0, phase ^= 1;
      wait(left + 8 * (q % PLACES), q / PLACES);
      clock.mark(SUM);
      quad more[SAMPLES / 8];
#pragma unroll
      for (int i = 0; i < SAMPLES / 8; i++) more[i] = sums[(q % PLACES * SAMPLES / 8 + i) * FOUR + mine];
      bar_arrive(taken + 8 * (q % PLACES));
      float state[2][MINE][STATES], saved[2][MINE][Cell::SAVED > 0 ? Cell::SAVED : 1];
      if (!SAVES && t > 0) wait(written + 8 * part, t - 1);
#pragma unroll
      for (int i = 0; i < SAMPLES / 2; i++) sum[i] += __uint_as_float(more[i / 4].v[i % 4]);
#pragma unroll
      for (int e = 0; e < MINE; e++)
#pragma unroll
        for (int u = 0; u < 2; u++) {
          float v[4], gate[GATES], input[4];
#pragma unroll
          for (int g = 0; g < 4; g++) v[g] = sum[MINE > 1 ? g * 4 + u * 2 + e : g / 2 * 4 + u * 2 + g % 2];
          exchange4<8>(v, lane);
#pragma unroll
          for (int g = 0; g < 4; g++)
            if (g < GATES) gate[g] = Cell::early(g, v[g] + bias[u][g]);
            else input[g - GATES] = v[g];
#pragma unroll
          for (int s = 0; s < STATES; s++) state[u][e][s] = *state_at(part, s, e, u);
          Cell::rest(gate, input, constants[u], state[u][e], saved[u][e]);
        }
#pragma unroll
      for (int e = 0; e < MINE; e++) put(t + 1, part, sample(e), state[0][e][Cell::THROUGH], state[1][e][Cell::THROUGH]);
      tell(part);
      clock.mark(CELL);

      // Nobody waits for what follows.
#pragma unroll
      for (int i = 0; i < 2 * MINE * STATES; i++) *state_at(part, i % STATES, i / STATES % MINE, i / (MINE * STATES)) = state[i / (MINE * STATES)][i / STATES % MINE][i % STATES];
      if (!SAVES) bar_arrive(kept + 8 * part);
#pragma unroll
      for (int e = 0; e < MINE && SAVES; e++)
#pragma unroll
        for (int u = 0; u < 2; u++) {
          const int n = begin + part * SAMPLES + sample(e);
          if (units + u < HIDDEN && n < min(batch, begin + SEQUENCES)) put_results(cell, batch, t, n, units + u, state[u][e], saved[u][e]);
        }
      if (++part == PARTS) part = 0, t++;
      clock.mark(REST);
    }
    // The last layer has what all blocks put after they had read the number.
    if (layer == LAYERS - 1 && rank == 0 && mine == 0) *latest = number + steps + 1;
  } else {
    fewer_registers<FEWER>();
    enum { LOWER_H, OWN_H, COUNTS, RESULTS };
    const int helper = warp % 4;
    if (helper == OWN_H || helper == LOWER_H && !FIRST) {
      const bool lower = helper == LOWER_H;
      const int from = lower ? layer - 1 : layer, share = rank % CLUSTER, places = lower ? STAGES : OWN;
      unsigned char* const h = lower ? lower_h : own_h;
      int stage = 0, phase = 1, part = 0, t = lower ? 1 : 0;
      for (int q = 0; q < total; q++) {
        const int place = lower ? stage : STAGES + stage;
        // This h will be written where that of DEPTH steps before was.
        if (!lower && layer < LAYERS - 1 && part == 0 && (t + 1) % COUNTED == 0 && t + 1 >= DEPTH) wait_count(above, before + BLOCKS * ((t + 1 - DEPTH) / COUNTED + 1));
        if (q >= places) wait(empty + 8 * place, phase);
        clock.mark(WAIT);
        if (stuck) break;
        if (lane < CLUSTER) bar_arrive(full + 8 * (place * CLUSTER + lane), COPY);
        wait_count(count_of(from, part, share), (number + t + 1) * SHARE);
        clock.mark(PRODUCT);
        if (lane == 0) copy_all<CLUSTER>(shared_address(h + stage * BYTES + share * COPY), image(from, t, part) + share * COPY, COPY, full + 8 * (place * CLUSTER + share));
        if (++stage == places) stage = 0, phase ^= 1;
        if (++part == PARTS) part = 0, t++;
      }
    } else if (helper == COUNTS) {
      for (int i = 0; i < total + PARTS; i++) {
        wait(done + 8 * (i % PARTS), i / PARTS);
        clock.mark(WAIT);
        if (lane == 0) add_release(count_of(layer, i % PARTS, rank / SHARE));
        clock.mark(SEND);
      }
    } else if (helper == RESULTS) {
      // Results that no backward pass needs are in the states: these lanes find adjacent units.
      int part = 0, t = 0;
      const int unit = rank * BAND + lane % BAND;
      for (int q = 0; q < total && !SAVES; q++) {
        wait(kept + 8 * part, t);
        const int first = begin + part * SAMPLES, live = min(SAMPLES, min(batch, begin + SEQUENCES) - first);
#pragma unroll 4
        for (int n = lane / BAND; n < live; n += 32 / BAND) {
          float state[STATES], saved[1];
#pragma unroll
          for (int s = 0; s < STATES; s++) state[s] = states[((part * STATES + s) * SAMPLES + n) * ROW + lane % BAND];
          if (unit < HIDDEN) put_results(cell, batch, t, first + n, unit, state, saved);
        }
        bar_arrive(written + 8 * part);
        if (++part == PARTS) part = 0, t++;
      }
    }
  }
  if (CLOCKS && group == 0 && rank == 0 && (role < 2 ? mine : lane) == 0 && warp % 4 < 3) clock.tell(cell, batch, (role < 2 ? role : 2 + warp % 4) * PHASES, steps);
  cluster_barrier();  // otherwise the other block may end before this one's messages arrive
}
#ifdef SAMPLE_STACK_BULK
#include "sample/stack_bulk_entry.cuh"
#endif
