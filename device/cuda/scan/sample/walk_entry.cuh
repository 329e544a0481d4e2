// What Go puts behind walk.cu for the kernel of sample/walk.cuh.
#include "../tiles.cu"

extern "C" __global__ void __launch_bounds__(64, 3)
scan_tiles_linear(int steps, int batch, int hidden, int bits, int chains, int tiles, int walkers, int buffer, word* tickets, word* sums, word* starts, unsigned* status, const float* all_bx, int ld_all_bx, const float* all_x, int ld_all_x, float* state0, int ld_state0) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, bits, chains, tiles, walkers, tickets, sums, starts, status};
  several* const rows = (several*)(memory + buffer);
  linear* const total = (linear*)(rows + g.span(g.rows()));
  word* const drawn = (word*)(total + (g.values() + 1) / 2 * 2);
  float* const begin = (float*)(drawn + 2);
  unsigned char *const at = memory, *const to = memory;
  auto fetch = [&](unsigned i) {
    const tile t = g.at(i);
    if (t.steps > 0) {
      const float* from_all_x0 = all_x + ((long long)(t.first + 0) * batch + t.n) * ld_all_x + (long long)0 * hidden + t.u;
#pragma unroll
      for (int i = 0; i < K + 0; i++)
        if (i < t.steps + 0) copy_async<16>((float*)(to + 0 * blockDim.x + threadIdx.x * 16 + (i + 0) * blockDim.x * 16), from_all_x0 + i * ((long long)batch * ld_all_x));
      const float* from_all_x1 = all_x + ((long long)(t.first + 0) * batch + t.n) * ld_all_x + (long long)1 * hidden + t.u;
#pragma unroll
      for (int i = 0; i < K + 0; i++)
        if (i < t.steps + 0) copy_async<16>((float*)(to + 64 * blockDim.x + threadIdx.x * 16 + (i + 0) * blockDim.x * 16), from_all_x1 + i * ((long long)batch * ld_all_x));
    }
    end_async();
  };
  wait_previous();
  if (threadIdx.x == 0) *drawn = g.noted(g.draw(blockIdx.x));
  __syncthreads();
  const unsigned run = (*drawn >> 32) + 1;
  unsigned now = *drawn, next;
  if (now < walkers) {
    walk<24>(g, now, memory, run);
    return;
  }
  now -= walkers;
  if (g.all() > 2 * gridDim.x) stagger(now / (gridDim.x / RESIDENT) * HEADSTART);
  fetch(now);
  __syncthreads();
  for (int turn = 0; now < g.all(); turn ^= 1, now = next) {
    const tile t = g.at(now);
    float* const start = begin + g.span(turn * N);
    word ticket;
    several row = identity();
      if (g.y() == 0 && t.steps > 0 && t.time == 0) {
        float first[V];
        load<V>(first, state0 + (long long)t.n * ld_state0 + t.u);
#pragma unroll
        for (int v = 0; v < V; v++) start[g.x() * N + 0 * V + v] = first[v];
      }
    {
    float keep_v2[K * V];
    float keep_v7[K * V];
    {
      float const_bx0[V];
      if (t.steps > 0) load<V>(const_bx0, all_bx + (long long)0 * ld_all_bx + (long long)0 * hidden + t.u);
      float const_bx1[V];
      if (t.steps > 0) load<V>(const_bx1, all_bx + (long long)0 * ld_all_bx + (long long)1 * hidden + t.u);
      wait_async<0>();
      if (threadIdx.x == 0) ticket = g.draw(g.all());
#pragma unroll
      for (int i = 0; i < K; i++) {
          float in_x0[V];
          load<V>(in_x0, (float*)(at + 0 * blockDim.x + threadIdx.x * 16 + (i + 0) * blockDim.x * 16));
          float in_x1[V];
          load<V>(in_x1, (float*)(at + 64 * blockDim.x + threadIdx.x * 16 + (i + 0) * blockDim.x * 16));
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
            keep_v2[i * V + v] = v2;
            keep_v7[i * V + v] = v7;
          }
      }
    }
    within(row, rows, g);
    if (threadIdx.x == 0) *drawn = g.noted(ticket);
    __syncthreads();
    next = (unsigned)*drawn - walkers;
    const several earlier = fold(rows, g.row(), g);
    word seen = 0;
    if (at_edge(g)) {
      publish_aggregate(g, t, row, earlier, total, start, run);
      seen = peek_prefix(g, t, total, start, run);
    }
    fetch(next);
    if (at_edge(g)) await_prefix(g, t, total, start, run, seen);
    __syncthreads();
    float state[N];
    before(state, g, row, earlier, start);
      float* to_next0 = state0 + ((long long)(t.first + 1) * batch + t.n) * ld_state0 + (long long)0 * hidden + t.u;
#pragma unroll
      for (int i = 0; i < K; i++) {
          float out_next0[V];
#pragma unroll
          for (int v = 0; v < V; v++) {
            const float v2 = keep_v2[i * V + v];
            const float v7 = keep_v7[i * V + v];
            const float prev0 = state[0 * V + v];
            const float v4 = v2 * prev0;
            const float v8 = v4 + v7;
            state[0 * V + v] = v8;
            out_next0[v] = v8;
          }
          if (i < t.steps) store<V>(to_next0, out_next0);
          to_next0 += ((long long)batch * ld_state0);
      }
    }
  }
}
