// What Go puts behind team.cu for the kernel of sample/team.cuh.
// The warps of a team's block, with groups: one copies a tile at a time, one composes group
// aggregates, and the others find exclusive prefixes. The code of the compute threads follows this
// text. team_source.go fills in words in capitals that are not constants.
extern "C" __global__ void __launch_bounds__(384, 1)
scan_team_linear(int steps, int batch, int hidden, int chains, int tiles, int group, int period, word* ticket, word* sums, word* totals, unsigned* status, const float* all_bx, int ld_all_bx, const float* all_x, int ld_all_x, float* state0, int ld_state0, const __grid_constant__ tensor_map box0, const __grid_constant__ tensor_map box1) {
  DYNAMIC_SHARED(memory);
  grid g = {steps, batch, hidden, chains, tiles, tiles, group, period, sums, totals, status};
  g.settle();
  unsigned char* const staged = memory + PLACES * BUFFER;
  float* const starts = (float*)(staged + STAGED);
  several* const rows = (several*)(starts + STATES * VALUES);
  float* const walked = (float*)(rows + 2 * ROWS * LANES);
  int *const found = (int*)(walked + (period * VALUES + 1) / 2 * 2), *const done = found + 1;
  const shared_t full = shared_address(done + 1), empty = full + 8 * PLACES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PLACES; i++) bar_init(full + 8 * i, COPIERS), bar_init(empty + 8 * i, ROWS);
    bar_publish();
    *found = *done = 0;
  }
  wait_previous();
  g.run = (get_staying(ticket) >> 32) + 1;
  __syncthreads();
  count_block(ticket);
  if (threadIdx.x >= THREADS) {
    fewer_registers<88>();
    const int me = threadIdx.x - THREADS, warp = me / 32;
    if (warp > SEEKERS) join(g, done);
    else if (warp > 0) seek(g, warp - 1, starts, walked, found, done);
    if (me >= COPIERS) return;
    turn ahead = g.begin();
    for (int i = 0, slot = 0; g.there(ahead); g.next(ahead), i++, slot = slot + 1 == PLACES ? 0 : slot + 1) {
      if (i >= PLACES) await(empty + 8 * slot, i / PLACES - 1);
      if (PACED && i > 0) await(full + 8 * ((i - 1) % PLACES), (i - 1) / PLACES);
      const int low = g.low(ahead.time);
      const int sides = (hidden + UNITS - 1) / UNITS, n = ahead.chain / sides * SEQS, u = ahead.chain % sides * UNITS;
      const shared_t to = shared_address(memory) + slot * BUFFER, bar = full + 8 * slot;
      bar_arrive(bar, 0 + 3840 + 3840);
#pragma unroll 1
      for (int j = 0; j < 2; j++) {
        const int row = low + 0 + j, from = (row % 2 * (batch * ld_all_x) + n * ld_all_x + 0 + u) / 4 * 4;
        tensor_load(to + 0 + j * 1920, box0, from, 0, row / 2 + 0, bar);
      }
#pragma unroll 1
      for (int j = 0; j < 2; j++) {
        const int row = low + 0 + j, from = (row % 2 * (batch * ld_all_x) + n * ld_all_x + 33 + u) / 4 * 4;
        tensor_load(to + 3840 + j * 1920, box1, from, 0, row / 2 + 0, bar);
      }
    }
    return;
  }
  more_registers<208>();
  turn now = g.begin(), behind = now;
  several past[BEHIND + 1];
  turn held = now;
  float keep_x0[BEHIND - HOLD + 1][K * V];
  float keep_x1[BEHIND - HOLD + 1][K * V];
  int slot = 0;
  for (int i = 0; g.there(behind); i++) {
#pragma unroll
    for (int k = BEHIND; k > 0; k--) past[k] = past[k - 1];
#pragma unroll
    for (int k = BEHIND - HOLD; k > 0; k--) {
#pragma unroll
      for (int j = 0; j < K * V; j++) {
        keep_x0[k][j] = keep_x0[k - 1][j];
        keep_x1[k][j] = keep_x1[k - 1][j];
      }
    }
    if (g.there(now)) {
      const tile t = g.at(now, threadIdx.x);
      unsigned char* const at = memory + slot * BUFFER;
      const bool begins = g.last() && t.time == 0;
      float initial[N];
#pragma unroll
      for (int k = 0; k < N; k++) initial[k] = 0;
      if (begins && t.inside) {
        float first[V];
        load<V>(first, state0 + (long long)t.n * ld_state0 + t.u);
#pragma unroll
        for (int v = 0; v < V; v++) initial[0 * V + v] = first[v];
      }
      several row = identity();
      const int sides = (hidden + UNITS - 1) / UNITS, at_n = now.chain / sides * SEQS, at_u = now.chain % sides * UNITS;
      const unsigned off0 = (g.low(t.time) + 0) * 2 + at_n * ld_all_x + 0 + at_u;
      const unsigned off1 = (g.low(t.time) + 0) * 2 + at_n * ld_all_x + 33 + at_u;
      float const_bx0[V];
      if (t.steps > 0) load<V>(const_bx0, all_bx + (long long)0 * ld_all_bx + (long long)0 * hidden + t.u);
      float const_bx1[V];
      if (t.steps > 0) load<V>(const_bx1, all_bx + (long long)0 * ld_all_bx + (long long)1 * hidden + t.u);
      unsigned line0_0[2];
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const unsigned row = (int)(threadIdx.x / LANES) * t.each + 0 + j;
        line0_0[j] = 0 + row % 2 * 1920 + row / 2 * 80 + min((int)(threadIdx.x % LANES), UNITS + OVER - 1) * 4 + (row * 2 + off0) % 4 * 4;
      }
      unsigned line3840_0[2];
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const unsigned row = (int)(threadIdx.x / LANES) * t.each + 0 + j;
        line3840_0[j] = 3840 + row % 2 * 1920 + row / 2 * 80 + min((int)(threadIdx.x % LANES), UNITS + OVER - 1) * 4 + (row * 2 + off1) % 4 * 4;
      }
      await(full + 8 * slot, i / PLACES);
#pragma unroll
      for (int i = 0; i < K; i++) {
          float in_x0[V];
          load<V>(in_x0, (float*)(at + line0_0[i % 2] + i / 2 * 80));
          float in_x1[V];
          load<V>(in_x1, (float*)(at + line3840_0[i % 2] + i / 2 * 80));
#pragma unroll
          for (int v = 0; v < V; v++) {
            const float bx0 = const_bx0[v];
            const float bx1 = const_bx1[v];
            const float x0 = in_x0[v];
            const float x1 = in_x1[v];
            const float v2 = x0 + bx0;
            const float v7 = x1 + bx1;
            const float prev0 = row.of[0 * V + v].add, factor0 = row.of[0 * V + v].factor;
            const float v4 = v2 * prev0;
            const float v8 = v4 + v7;
            const float v10 = factor0 * v2;
            row.of[0 * V + v].add = v8, row.of[0 * V + v].factor = v10;
          }
      }
      if (begins)
#pragma unroll
        for (int k = 0; k < N; k++) starts[g.x() * N + k] = initial[k]; // a first tile is its block's first one
      past[0] = before(row, rows + i % 2 * (ROWS * LANES));
      if (threadIdx.x == 0) put_here(done, i);
      if (g.last()) {
        word* const to = g.sum(now, now.time) + 2 * N * g.x();
#pragma unroll
        for (int k = 0; k < N; k++)
          put_staying(to + 2 * k, tagged(begins ? 0 : row.of[k].factor, g.run), tagged(begins ? after(row.of[k], initial[k]) : row.of[k].add, g.run));
      }
      g.next(now);
    }
    if (i >= HOLD && g.there(held)) {
      const tile t = g.at(held, threadIdx.x);
      const int slot = (i - HOLD) % PLACES;
      unsigned char* const at = memory + slot * BUFFER;
      const int sides = (hidden + UNITS - 1) / UNITS, at_n = held.chain / sides * SEQS, at_u = held.chain % sides * UNITS;
      const unsigned off0 = (g.low(t.time) + 0) * 2 + at_n * ld_all_x + 0 + at_u;
      const unsigned off1 = (g.low(t.time) + 0) * 2 + at_n * ld_all_x + 33 + at_u;
      unsigned line0_0[2];
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const unsigned row = (int)(threadIdx.x / LANES) * t.each + 0 + j;
        line0_0[j] = 0 + row % 2 * 1920 + row / 2 * 80 + min((int)(threadIdx.x % LANES), UNITS + OVER - 1) * 4 + (row * 2 + off0) % 4 * 4;
      }
      unsigned line3840_0[2];
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const unsigned row = (int)(threadIdx.x / LANES) * t.each + 0 + j;
        line3840_0[j] = 3840 + row % 2 * 1920 + row / 2 * 80 + min((int)(threadIdx.x % LANES), UNITS + OVER - 1) * 4 + (row * 2 + off1) % 4 * 4;
      }
#pragma unroll
      for (int i = 0; i < K; i++) {
          float in_x0[V];
          load<V>(in_x0, (float*)(at + line0_0[i % 2] + i / 2 * 80));
          float in_x1[V];
          load<V>(in_x1, (float*)(at + line3840_0[i % 2] + i / 2 * 80));
#pragma unroll
          for (int v = 0; v < V; v++) {
            const float x0 = in_x0[v];
            const float x1 = in_x1[v];
            keep_x0[0][i * V + v] = x0;
            keep_x1[0][i * V + v] = x1;
          }
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) bar_arrive(empty + 8 * slot);
      g.next(held);
    }
    if (i >= BEHIND) {
      const tile t = g.at(behind, threadIdx.x);
      const int found_at = (i - BEHIND) % STATES;
      float const_bx0[V];
      if (t.steps > 0) load<V>(const_bx0, all_bx + (long long)0 * ld_all_bx + (long long)0 * hidden + t.u);
      float const_bx1[V];
      if (t.steps > 0) load<V>(const_bx1, all_bx + (long long)0 * ld_all_bx + (long long)1 * hidden + t.u);
      float* to_next0 = state0 + ((long long)(t.first + 1) * batch + t.n) * ld_state0 + (long long)0 * hidden + t.u;
      meet_at(STARTED + found_at, THREADS + 32);
      float state[N];
#pragma unroll
      for (int k = 0; k < N; k++) state[k] = after(past[BEHIND].of[k], starts[found_at * VALUES + g.x() * N + k]);
#pragma unroll
      for (int i = 0; i < K; i++) {
          float out_next0[V];
#pragma unroll
          for (int v = 0; v < V; v++) {
            const float bx0 = const_bx0[v];
            const float bx1 = const_bx1[v];
            const float x0 = keep_x0[BEHIND - HOLD][i * V + v];
            const float x1 = keep_x1[BEHIND - HOLD][i * V + v];
            const float prev0 = state[0 * V + v];
            const float v2 = x0 + bx0;
            const float v4 = v2 * prev0;
            const float v7 = x1 + bx1;
            const float v8 = v4 + v7;
            state[0 * V + v] = v8;
            out_next0[v] = v8;
          }
          if (i < t.steps) store<V>(to_next0, out_next0);
          to_next0 += ((long long)batch * ld_state0);
      }
      g.next(behind);
    }
    slot = slot + 1 == PLACES ? 0 : slot + 1;
  }
}
