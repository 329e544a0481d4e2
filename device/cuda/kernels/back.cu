// The gradient of a layer over all steps of time in a group of blocks, from the
// last step to the first. A block keeps the weights that it has in the forward
// pass, those of its units' gates, and so needs no gradients of other blocks':
// it multiplies its own with them, which gives a part of the gradient of every
// unit's state, and sends each block the part of its units. A step:
//
//   wait      until the parts of all blocks have come
//   sum       them, in the order of the blocks, to the state's gradient
//   cell      backward; gradients of the units' gates go to shared memory
//   product   of them with the weights on tensor cores: a warp has GROUPS times
//             16 units of the layer, for all SAMPLES sequences
//   push      the parts to the blocks whose units they are of
//
// Parts lie as fragments do: four of a lane side by side, two units of two
// sequences each. See tensor.cu for fragments and cluster.cu for groups.
template <class Cell> __device__ __forceinline__ void back_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* trouble) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, TILES = SAMPLES / 8, THREADS = WARPS * 32;
  constexpr int SIZE = sizeof(W), FEW = 16 / SIZE, PAIR = 4 / SIZE; // values of 16 bytes and of a word
  constexpr int WIDTH = CHUNKS * 64, ROW = WIDTH + (WIDTH % 128 == 0 ? 64 : 0);
  constexpr int VALUES = UNITS * SAMPLES, EACH = (VALUES + THREADS - 1) / THREADS;
  constexpr int PARTS = CLUSTER * VALUES * 4, NEXT = SPREAD ? 0 : PARTS;
  constexpr int TOTAL = CLUSTER * UNITS / 16, GROUPS = (TOTAL + WARPS - 1) / WARPS, PIECES = GROUPS * CHUNKS;

  DYNAMIC_SHARED(memory);
  float* const parts = (float*)(memory + 128);                // [1 or 2][CLUSTER][VALUES]
  unsigned char* const grads = memory + 128 + PARTS + NEXT;   // [SAMPLES][ROW]
  quad* const far = (quad*)(grads + SAMPLES * ROW);           // weights beyond registers
  const shared_t base = shared_address(memory), bar = base;
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4;
  const int rank = blockIdx.x % CLUSTER, group = blockIdx.x / CLUSTER;

  quad w[RESIDENT > 0 ? RESIDENT : 1][2];
  auto fill = [&](int piece, int half) {
    const int unit = (piece / CHUNKS * WARPS + warp) * 16 + 2 * row, column = (piece % CHUNKS * 4 + four) * FEW + half * FEW / 2;
    quad q;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      q.v[j] = 0;
#pragma unroll
      for (int p = 0; p < PAIR; p++) {
        const int k = column + j / 2 * PAIR + p, of = rank * UNITS + k % UNITS, to = unit + j % 2;
        if (k < GATES * UNITS && of < HIDDEN && to < HIDDEN) q.v[j] |= bits_of(cell.weights[(long long)(k / UNITS * HIDDEN + of) * HIDDEN + to]) << 16 * p;
      }
    }
    return q;
  };
#pragma unroll
  for (int i = 0; i < RESIDENT; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) w[i][half] = fill(i, half);
  for (int i = RESIDENT; i < PIECES; i++)
    for (int half = 0; half < 2; half++) far[((i - RESIDENT) * 2 + half) * THREADS + tid] = fill(i, half);

  for (int i = tid; i < (PARTS + NEXT + SAMPLES * ROW) / 4; i += THREADS) ((unsigned*)parts)[i] = 0;
  int live = min(SAMPLES, batch - group * SAMPLES);           // sequences of the group
  const int bytes = CLUSTER * UNITS * 8 * ((live + 1) / 2);   // a lane's four parts belong to two
  if (!SPREAD) {
    if (tid == 0) {
      bar_init(bar, 1);
      bar_init(bar + 8, 1);
      bar_publish();
      bar_arrive(bar, 0);          // there are none for the last step
      bar_arrive(bar + 8, bytes);
    }
  }
  Exchange<CLUSTER * CLUSTER * VALUES, THREADS> words(control, group);
  constexpr int LINE = CLUSTER * UNITS;                       // a sequence's words for one block
  bool stuck = false;
  for (int begin = group * SAMPLES; begin < batch; begin += SPREAD ? gridDim.x / CLUSTER * SAMPLES : batch) {
    live = min(SAMPLES, batch - begin);
    __syncthreads();
    if (SPREAD)
      for (int i = tid; i < PARTS / 4; i += THREADS) parts[i] = 0;
    __syncthreads();
    if (!SPREAD) cluster_barrier();

    float state[EACH][Cell::STATES], x[2][EACH][Cell::INPUTS];
    int at[EACH], unit[EACH];  // of this thread's parts: sequence and unit
    bool some[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int v = tid + e * THREADS, l = v / 4 % 32;
      at[e] = v / 128 % TILES * 8 + 2 * (l % 4) + v % 2;
      unit[e] = rank * UNITS + v / (128 * TILES) * 16 + 2 * (l / 4) + v / 2 % 2;
      some[e] = v < VALUES && unit[e] < HIDDEN && at[e] < live;
      at[e] = min(begin + at[e], batch - 1), unit[e] = min(unit[e], HIDDEN - 1);
      cell.before(at[e], unit[e], state[e]);
      cell.input(steps - 1, batch, at[e], unit[e], x[0][e]);
      cell.input(max(0, steps - 2), batch, at[e], unit[e], x[1][e]);
    }

    for (int even = 0, phase = 0; even <= steps; even += 2, phase ^= 1)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int i = even + now, t = steps - 1 - i, next = 1 - now;
        if (i > steps) break;
        auto place = [&](int j, float v) {
          const int n = j / LINE, u = j % UNITS, lanes = u % 16 / 2 * 4 + n % 8 / 2;
          parts[j / UNITS % CLUSTER * VALUES + ((u / 16 * TILES + n / 8) * 32 + lanes) * 4 + u % 2 * 2 + n % 2] = v;
        };
        if (!stuck && !(SPREAD ? i == 0 || words.fetch(live * LINE, place, rank * SAMPLES * LINE) : arrived(bar + 8 * now, phase))) {
          *trouble = STUCK;
          stuck = true;
        }
        if (SPREAD) __syncthreads();
        float kept[EACH][Cell::RESULTS];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          float z = 0;
          if (tid + e * THREADS < VALUES)
#pragma unroll
            for (int from = 0; from < CLUSTER; from++) z += parts[now * (NEXT / 4) + from * VALUES + tid + e * THREADS];
          state[e][Cell::THROUGH] += z;
          if (t < 0) {
            if (some[e]) cell.after(at[e], unit[e], state[e]);
            continue;
          }
          float sent[GATES];
          Cell::rest(x[now][e], state[e], sent, kept[e]);
          const int v = tid + e * THREADS, l = v / 4 % 32, n = v / 128 % TILES * 8 + 2 * (l % 4) + v % 2, u = v / (128 * TILES) * 16 + 2 * (l / 4) + v / 2 % 2;
          if (v < VALUES)
#pragma unroll
            for (int g = 0; g < GATES; g++) narrow(*(W*)(grads + n * ROW + (g * UNITS + u) * SIZE), some[e] ? sent[g] : 0);
        }
        if (t < 0) break;
        __syncthreads();

        if (SPREAD) words.next();
        auto send = [&](int block, int local, const float (*sum)[4]) {
#pragma unroll
          for (int n = 0; n < TILES; n++) {
            const int sample = n * 8 + 2 * four;
            if (sample >= live) continue;
            if (!SPREAD) {
              const shared_t to = remote(base, block);
              push<4>(to + 128 + next * NEXT + (rank * VALUES + ((local / 16 * TILES + n) * 32 + lane) * 4) * 4, sum[n], to + 8 * next);
            } else {
#pragma unroll
              for (int q = 0; q < 4; q++)
                if (sample + q % 2 < live) words.put(sum[n][q], (block * SAMPLES + sample + q % 2) * LINE + rank * UNITS + local + 2 * row + q / 2);
            }
          }
        };
        auto multiply = [&](int chunk, const quad* weights, float (*sum)[4]) {
#pragma unroll
          for (int n = 0; n < TILES; n++) {
            const quad in = *(const quad*)(grads + (n * 8 + row) * ROW + (chunk * 4 + four) * 16);
#pragma unroll
            for (int half = 0; half < 2; half++) mma<W, EXACT != 0>(sum[n], weights[half].v, in.v[2 * half], in.v[2 * half + 1]);
          }
        };
#pragma unroll
        for (int j = 0; j < GROUPS; j++) {
          float sum[TILES][4];
#pragma unroll
          for (int q = 0; q < TILES * 4; q++) sum[q / 4][q % 4] = 0;
#pragma unroll
          for (int c = 0; c < CHUNKS; c++)
            if (j * CHUNKS + c < RESIDENT) multiply(c, w[j * CHUNKS + c < RESIDENT ? j * CHUNKS + c : 0], sum);
#pragma unroll 2
          for (int c = max(0, min(CHUNKS, RESIDENT - j * CHUNKS)); c < CHUNKS; c++) {
            const quad* const from = far + (j * CHUNKS + c - RESIDENT) * 2 * THREADS + tid;
            const quad both[2] = {from[0], from[THREADS]};
            multiply(c, both, sum);
          }
          const int first = (j * WARPS + warp) * 16;
          if (first < TOTAL * 16) send(first / UNITS, first % UNITS, sum);
        }
        if (!SPREAD && tid == 0) bar_arrive(bar + 8 * now, bytes);

        // Nobody waits for what follows.
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (some[e]) cell.store(t, batch, at[e], unit[e], kept[e]);
          if (t > 1) cell.input(t - 2, batch, at[e], unit[e], x[now][e]);
        }
      }
  }
  const int together = gridDim.x / CLUSTER * SAMPLES;
  if (SPREAD) words.finish((batch + together - 1) / together * steps);
  else cluster_barrier();
}
