#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD_BULK
#include "sample/backward_bulk.cuh"
#endif
// The gradient of a layer over all steps, from the last to the first, for many sequences. A group
// has CLUSTERS clusters of CLUSTER blocks each. Products are on tensor cores. A cluster has UNITS ·
// CLUSTER units of the layer, and a block UNITS of them. Blocks of the same rank in their clusters
// gather each other's gradients, those of their units' gates. They multiply them by the weights
// from there to all units of their own cluster. The blocks of a cluster then have parts of the
// gradient of a unit's h, which are summed where the unit is. So each gradient travels once to each
// cluster, through memory as h does in mma_bulk.cu, where it lies as it will lie in shared memory.
// Each sum travels to one block.
//
// A group with more than SAMPLES sequences takes turns with them. A turn:
//
//   wait      until the gradients of SAMPLES sequences have been copied
//   product   a warp multiplies HEIGHT tiles of 16 units of the cluster by a slice of the columns
//   count     the previous turn's writes, which by now costs no wait
//   push      sums to the blocks of the cluster
//   copy      the gradients of the next turn; before all this if they were counted long ago
//   cell      of the sequences just pushed, once all sums have come. With many turns, of an
//             earlier turn's sequences instead. Gradients go to memory
//
// With WORDED, groups do not take turns, and gradients travel as words (recurrence.cu), each with a
// value and the number of its step. These are twice the bytes, but are neither counted nor copied.
// One of two images is filled while warps may still read the other.
//
// With EXACT, the gradients of a band of units are scaled to the range of fp16, each sequence's by
// a power of two. Products of each band are summed separately and scaled back.
//
// Weights that exceed the chip come from memory in each turn, through a ring per warp (ring.cu),
// which fills again while gradients are exchanged.
//
// The number of buffers of sums follows from how many turns two blocks of a cluster may be apart. A
// block that pushes in turn i has received what the others pushed lag + 1 turns before. They had
// then used what was pushed lag + 1 turns before that.
template <class Cell> __device__ __forceinline__ void back_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, THREADS = WARPS * 32, GROUP = CLUSTERS * CLUSTER, LINE = CLUSTER * UNITS;
  constexpr int EIGHTS = SAMPLES / 8, VALUES = UNITS * SAMPLES, EACH = (VALUES + THREADS - 1) / THREADS;
  constexpr int BANDS = UNITS / BAND, RUNS = CLUSTERS * BANDS;             // bands whose gradients a block gathers
  constexpr int PIECE = EXACT ? (GATES * BAND * 4 + 63) / 64 * 64 : GATES * BAND * SIZE; // bytes per band
  constexpr int PER = EXACT ? PIECE / 64 : CHUNKS;                         // pieces that are summed together
  constexpr int ROW = SPLIT * CHUNKS * 64 + (SPLIT * CHUNKS % 2 == 0 ? 64 : 0), SCALES = EXACT ? SPLIT * (CHUNKS / PER) * SAMPLES * 4 : 0;
  constexpr int IMAGE = SCALES + SAMPLES * ROW;
  constexpr int BUSY = VALUES < THREADS ? VALUES / 32 : WARPS;             // warps that have values
  constexpr int SENDERS = CLUSTER * SPLIT, PARTS = SENDERS * VALUES, RING = 4, STATES = Cell::STATES;
  constexpr int CHAINS = EXACT ? 2 : chains(HEIGHT * EIGHTS);
  constexpr int QUADS = HEIGHT * 2 * 32, FAR = CHUNKS - RESIDENT - PASSING; // quads per piece; pieces in shared memory
  typedef Tiers<CHUNKS, PASSING, DEPTH * PORTION> Tier;
  constexpr int WIDE = GATES * BAND / PAIR, RECORD = RUNS * (WIDE + EXACT); // words per band, and per sequence with its scales

  DYNAMIC_SHARED(memory);
  unsigned char* const images = memory + 128;                              // [SLOTS][IMAGE]: scales, then [SAMPLES][ROW]
  float* const parts = (float*)(images + SLOTS * IMAGE);                   // [RING][SENDERS][VALUES]
  quad* const far = (quad*)(parts + RING * PARTS);                         // weights in shared memory
  quad* const passing = far + FAR * HEIGHT * 2 * THREADS;                  // [WARPS][DEPTH][PORTION][QUADS], the rings
  quad* const barriers = passing + WARPS * DEPTH * PORTION * QUADS;          // of the rings, [WARPS][DEPTH] of 8 bytes
  float* const states = (float*)(barriers + (WARPS * DEPTH + 1) / 2);      // [passes][EACH][STATES][THREADS]
  const shared_t base = shared_address(memory), bar = base, ring = base + 16;
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4, slice = warp % SPLIT;
  const int block = blockIdx.x % GROUP, rank = block % CLUSTER, cluster = block / CLUSTER, group = blockIdx.x / GROUP, groups = gridDim.x / GROUP;
  const int all = (batch + SAMPLES - 1) / SAMPLES, passes = (all - group + groups - 1) / groups; // units of SAMPLES sequences in all, and this group's
  const bool many = passes > 2, ahead = passes > 3 && SLOTS == 2;
  const int lag = many ? 1 : 0, turns = steps * passes;

  quad w[RESIDENT > 0 ? RESIDENT : 1][HEIGHT][2];
  unsigned large = 0;                                                      // reported once, since reads wait for earlier writes
  auto fill = [&](int i, int h, int half) {
    auto weight = [&](int k, int u) {
      const int run = k / (PIECE / SIZE), within = k % (PIECE / SIZE), g = within / BAND;
      const int of = (run / BANDS * CLUSTER + rank) * UNITS + run % BANDS * BAND + within % BAND, to = cluster * LINE + u;
      return run < RUNS && g < GATES && of < HIDDEN && to < HIDDEN ? widen(cell.weights[(long long)(g * HIDDEN + of) * HIDDEN + to]) : 0.f;
    };
    return fragment(weight, (warp / SPLIT * HEIGHT + h) * 16 + 2 * row, ((slice * CHUNKS + i) * 4 + four) * FEW, half, &large);
  };
  // Through shared memory, some at a time: finding all at once takes more registers than there are.
  constexpr int ROOM = (SLOTS * IMAGE + RING * PARTS * 4) / (HEIGHT * 2 * 16 * THREADS), STAGE = ROOM > 0 ? ROOM : 1;
  quad* const stage = (quad*)images + tid;
#pragma unroll
  for (int first = 0; first < RESIDENT; first += STAGE) {
    const int some = min(STAGE, RESIDENT - first);
#pragma unroll 4
    for (int i = 0; i < some * HEIGHT * 2; i++) stage[i * THREADS] = fill(Tier::resident(first + i / (HEIGHT * 2)), i / 2 % HEIGHT, i % 2);
#pragma unroll
    for (int i = 0; i < STAGE && first + i < RESIDENT; i++)
#pragma unroll
      for (int q = 0; q < HEIGHT * 2; q++) w[first + i][q / 2][q % 2] = stage[(i * HEIGHT * 2 + q) * THREADS];
  }
#pragma unroll 4
  for (int i = 0; i < FAR * HEIGHT * 2; i++) far[i * THREADS + tid] = fill(Tier::resident(RESIDENT + i / (HEIGHT * 2)), i / 2 % HEIGHT, i % 2);
  if (large) *status = large;

  // For each SAMPLES sequences and each rank: a counter, and two images of gradients, for even and odd steps.
  unsigned* const counters = control + 64;
  unsigned char* const memories = (unsigned char*)(counters + all * CLUSTER * 32);
  auto counter = [&](int id) { return counters + (id * CLUSTER + rank) * 32; };
  auto image = [&](int id, int step) { return memories + ((step % 2 * (long long)all + id) * CLUSTER + rank) * IMAGE; };
  Ring<PASSING ? PASSING / PORTION : 1, DEPTH, PORTION * QUADS, PASSING ? KEPT : 1> weights;
  if (PASSING) {  // after the images, [blocks][WARPS][PASSING][QUADS]
    quad* const mine = (quad*)(memories + 2ll * all * CLUSTER * IMAGE) + (blockIdx.x * WARPS + warp) * (long long)(PASSING * QUADS);
#pragma unroll 4
    for (int i = 0; i < PASSING * HEIGHT * 2; i++) mine[i * 32 + lane] = fill(Tier::passing(i / (HEIGHT * 2)), i / 2 % HEIGHT, i % 2);
    if (large) *status = large;
    weights.begin(mine, passing + warp * (DEPTH * PORTION * QUADS), shared_address(barriers) + warp * DEPTH * 8, turns * (PASSING / PORTION), lane);
  }
  bool stuck = false, lost = false;
  auto count = [&](int id) {
    __syncwarp();
    if (lane == 0) add_release(counter(id));
  };
  Exchange<WORDED ? RECORD * SAMPLES : 2, THREADS> words(control, group * CLUSTER + rank);
  int next_pass = 0, next_step = 0, next = 0;                              // of the next copy, in one thread
  auto copy = [&] {
    const int id = next_pass * groups + group, bytes = SCALES + min(SAMPLES, batch - id * SAMPLES) * ROW;
    const unsigned want = (next_step + 1) * (CLUSTERS * BUSY);
    const long long start = clock64();
    while (!lost && (int)(get_acquire(counter(id)) - want) < 0) {
      pause();
      if (clock64() - start > PATIENCE) *status = STUCK, lost = true;
    }
    if (lost) return;
    bar_arrive(bar + 8 * (next % SLOTS), bytes);
    copy_bulk(shared_address(images + next % SLOTS * IMAGE), image(id, next_step), bytes, bar + 8 * (next % SLOTS));
    next++;
    if (++next_pass == passes) next_pass = 0, next_step++;
  };
  const bool copies = !WORDED && tid == THREADS - 32;

  // This thread's values: sequences and units.
  auto sample_of = [](int v) { return v / (2 * BAND) % (SAMPLES / 2) * 2 + v % 2; };
  auto unit_of = [](int v) { return v / (BAND * SAMPLES) * BAND + v / 4 % (BAND / 2) * 2 + v / 2 % 2; };
  auto place = [](int u, int n) { return (u / BAND * (SAMPLES / 2) + n / 2) * (2 * BAND) + u % BAND / 2 * 4 + u % 2 * 2 + n % 2; };
  auto read = [&](int pass, int t, float (*x)[Cell::INPUTS]) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int v = tid + e * THREADS, n = (pass * groups + group) * SAMPLES + sample_of(v), u = block * UNITS + unit_of(v);
      cell.input(t, batch, min(n, batch - 1), min(u, HIDDEN - 1), x[e]);
    }
  };
  // gradient runs the cell of step t, or leaves the gradient of the first states. from has the sums
  // that have come.
  float kept[EACH][Cell::RESULTS];
  int written = -1;                                                        // what is still to be counted; counting waits for writes, so it is done later
  auto gradient = [&](int pass, int t, const float (*x)[Cell::INPUTS], const float* from) {
    const int id = pass * groups + group;
    if (WORDED && t >= 0) words.next();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int v = tid + e * THREADS, n = id * SAMPLES + sample_of(v), local = unit_of(v), unit = block * UNITS + local;
      if (v >= VALUES) break;                                              // the same for all of a warp
      const bool some = n < batch && unit < HIDDEN;
      const int u = min(unit, HIDDEN - 1);
      float state[STATES], ready[Cell::READY], sent[GATES];
#pragma unroll
      for (int s = 0; s < STATES; s++) state[s] = states[((pass * EACH + e) * STATES + s) * THREADS + tid];
      if (from) {
        float sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < SENDERS; i++) sum[i % 4] += from[i * VALUES + v];
        state[Cell::THROUGH] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
      }
      if (t < 0) {
        if (some) cell.after(n, u, state);
        continue;
      }
      Cell::early(x[e], ready);
      Cell::rest(ready, state, sent, kept[e]);
      unsigned char* const to = WORDED ? nullptr : image(id, steps - 1 - t);
      const int run = cluster * BANDS + local / BAND;
      float scale = 1;
      if (EXACT) {
        float most = 0;
#pragma unroll
        for (int g = 0; g < GATES; g++) most = fmaxf(most, some ? fabsf(sent[g]) : 0);
#pragma unroll
        for (int m = 2; m < 2 * BAND; m *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, m));
        scale = power_to_halves(__float_as_uint(most), false);
        const float back = power_to_halves(__float_as_uint(most), true);
        if (local % BAND != 0) {
        } else if (!WORDED) *(float*)(to + (run * SAMPLES + sample_of(v)) * 4) = back;
        else if (n < batch) words.put(back, sample_of(v) * RECORD + RUNS * WIDE + run);
      }
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        unsigned ignored;
        const float mine = some ? sent[g] * scale : 0, other = __shfl_xor_sync(0xffffffff, mine, 2);
        const unsigned word = word_of(mine, other, local % 2, &ignored);
        if (local % PAIR != 0) continue;
        const int at = (g * BAND + local % BAND) / PAIR;
        if (!WORDED) *(unsigned*)(to + SCALES + sample_of(v) * ROW + run * PIECE + at * 4) = word;
        else if (n < batch) words.put(__uint_as_float(word), sample_of(v) * RECORD + run * WIDE + at);
      }
#pragma unroll
      for (int s = 0; s < STATES; s++) states[((pass * EACH + e) * STATES + s) * THREADS + tid] = state[s];
    }
    if (t < 0 || warp >= BUSY) return;
    if (!WORDED && passes == 1) count(id);
    written = id;
#pragma unroll
    for (int e = 0; e < EACH; e++) {  // nobody waits for the rest
      const int v = tid + e * THREADS, n = id * SAMPLES + sample_of(v), unit = block * UNITS + unit_of(v);
      if (v < VALUES && n < batch && unit < HIDDEN) cell.store(t, batch, n, unit, kept[e]);
    }
  };

  __syncthreads();
  for (int i = tid; i < (SLOTS * IMAGE + RING * PARTS * 4) / 4; i += THREADS) ((unsigned*)images)[i] = 0;
  show_engine();  // the engine's copies come after these writes
  if (tid == 0) {
    bar_init(bar, 1);
    bar_init(bar + 8, 1);
    for (int i = 0; i < RING; i++) bar_init(ring + 8 * i, 1);
    bar_publish();
    for (int i = 0; i < RING; i++) bar_arrive(ring + 8 * i, PARTS * 4);
  }
  float x[EACH][Cell::INPUTS];
  for (int p = 0; p < passes; p++) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int v = tid + e * THREADS, n = (p * groups + group) * SAMPLES + sample_of(v), u = block * UNITS + unit_of(v);
      float state[STATES];
      cell.before(min(n, batch - 1), min(u, HIDDEN - 1), state);
#pragma unroll
      for (int s = 0; s < STATES; s++) states[((p * EACH + e) * STATES + s) * THREADS + tid] = state[s];
    }
    read(p, steps - 1, x);
    gradient(p, steps - 1, x, nullptr);
    if (!WORDED && passes > 1 && written >= 0) count(written);
    written = -1;
  }
  __syncthreads();
  cluster_barrier();
  if (copies) copy();

  shared_t there[HEIGHT];                                                  // the block whose units the warp has sums for
#pragma unroll
  for (int h = 0; h < HEIGHT; h++) there[h] = remote(base, ((warp / SPLIT * HEIGHT + h) * 16 + 2 * row) / UNITS);
  int slot = 0, phase = 0, pass = 0, t = steps - 2;                        // of the cell
  for (int i = 0; i < turns + lag; i++) {
    const bool cells = i >= lag;
    if (cells && t >= 0) read(pass, t, x);
    if (i < turns) {
      if (copies && ahead && i + 1 < turns) copy();
      unsigned char* const from = images + slot * IMAGE;
      auto put = [&](int i, float v) {
        const int n = i / RECORD, at = i % RECORD;
        if (at < RUNS * WIDE) *(float*)(from + SCALES + n * ROW + at / WIDE * PIECE + at % WIDE * 4) = v;
        else *(float*)(from + ((at - RUNS * WIDE) * SAMPLES + n) * 4) = v;
      };
      if (!stuck && !(WORDED ? words.fetch(min(SAMPLES, batch - group * SAMPLES) * RECORD, put) : arrived(bar + 8 * slot, phase))) *status = STUCK, stuck = true;
      if (WORDED) __syncthreads();  // all words are here, and all threads are done with the previous turn's image and sums
      float sum[CHAINS][EIGHTS][HEIGHT][4], whole[EIGHTS][HEIGHT][4];
#pragma unroll
      for (int q = 0; q < EIGHTS * HEIGHT * 4; q++) (&whole[0][0][0])[q] = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        if (c % PER == 0)
#pragma unroll
          for (int q = 0; q < CHAINS * EIGHTS * HEIGHT * 4; q++) (&sum[0][0][0][0])[q] = 0;
        quad in[EIGHTS];
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) in[n] = *(const quad*)(from + SCALES + (n * 8 + row) * ROW + ((slice * CHUNKS + c) * 4 + four) * 16);
        const int before = Tier::streamed_before(c), resident = c - before;
        if (!Tier::streamed(c) && resident < RESIDENT) {
          multiply<CHAINS>(sum, 2 * c, w[resident < RESIDENT ? resident : 0], in);
        } else {
          quad some[HEIGHT][2];
          if (Tier::streamed(c)) {
            const quad* const at = (before % PORTION == 0 ? weights.wait(status) : weights.here()) + before % PORTION * QUADS + lane;
#pragma unroll
            for (int q = 0; q < HEIGHT * 2; q++) some[q / 2][q % 2] = at[q * 32];
          } else {
#pragma unroll
            for (int q = 0; q < HEIGHT * 2; q++) some[q / 2][q % 2] = far[((resident - RESIDENT) * HEIGHT * 2 + q) * THREADS + tid];
          }
          multiply<CHAINS>(sum, 2 * c, some, in);
          if (Tier::streamed(c) && before % PORTION == PORTION - 1) weights.next(before / PORTION, lane);
        }
        if (c % PER != PER - 1) continue;
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
          float back[2] = {1, 1};
          if (EXACT) load<2>(back, (const float*)(from + ((slice * (CHUNKS / PER) + c / PER) * SAMPLES + n * 8 + 2 * four) * 4));
#pragma unroll
          for (int h = 0; h < HEIGHT; h++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
              float z = sum[0][n][h][q];
              if (EXACT) z += sum[CHAINS - 1][n][h][q] / LOW;
              else
#pragma unroll
                for (int chain = 1; chain < CHAINS; chain++) z += sum[chain][n][h][q];
              whole[n][h][q] = EXACT ? fmaf(z, back[q % 2], whole[n][h][q]) : z;
            }
        }
      }
      if (!WORDED && passes > 1 && written >= 0) count(written);
      written = -1;
      if (!WORDED) __syncthreads();  // all are done with this image and the previous turn's sums
#pragma unroll
      for (int h = 0; h < HEIGHT; h++)
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
          const int u = ((warp / SPLIT * HEIGHT + h) * 16 + 2 * row) % UNITS;
          push<4>(there[h] + 128 + SLOTS * IMAGE + (i % RING * PARTS + (rank * SPLIT + slice) * VALUES + place(u, n * 8 + 2 * four)) * 4, whole[n][h], there[h] + 16 + 8 * (i % RING));
        }
      if (copies && !ahead && passes > 1 && i + 1 < turns) copy();
      if (++slot == SLOTS) slot = 0, phase ^= 1;
    }
    if (cells) {
      const int of = i - lag;
      if (!stuck && !arrived(ring + 8 * (of % RING), of / RING % 2)) *status = STUCK, stuck = true;
      if (tid == 0) bar_arrive(ring + 8 * (of % RING), PARTS * 4);         // for turn of + RING
      gradient(pass, t, x, parts + of % RING * PARTS);
      if (++pass == passes) pass = 0, t--;
      if (copies && passes == 1 && i + 1 < turns) copy();
    }
  }
  cluster_barrier();
  if (WORDED) {
    words.finish(steps);
    return;
  }
  // All have been counted as often as they will be.
  // The last block to end resets the counters to 0.
  if (tid != 0 || atomicAdd(control + 1, 1) != gridDim.x - 1) return;
  control[1] = 0;
  for (int i = 0; i < all * CLUSTER; i++) counters[i * 32] = 0;
}
#ifdef SAMPLE_BACKWARD_BULK
#include "sample/backward_bulk_entry.cuh"
#endif
