#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_WALK
#include "sample/walk.cuh"
#endif
// How states pass along chains of tiles: walker blocks read what tiles publish, in the order of
// time, and give each tile its prefix.

// walk is the work of walker number first. Walkers divide the chains' values among them, 32
// adjacent ones at a time. A warp handles LOOKS tiles of such values, in the order of time, and
// passes the state to the warp that has the next tiles. The words of these tiles have the same tag.
template <int LOOKS, class G> __device__ __forceinline__ void walk(const G& g, int first, unsigned char* memory, unsigned run) {
  const int pieces = (g.values() + 31) / 32, mine = (g.chains * pieces - first + g.walkers - 1) / g.walkers;
  const int lane = threadIdx.x % 32, batches = (g.tiles - 2 + LOOKS) / LOOKS;
  int* const done = (int*)memory;
  float* const states = (float*)(done + mine);
  for (int i = threadIdx.x; i < mine; i += blockDim.x) done[i] = 0;
  __syncthreads();
#pragma unroll 1
  for (int task = threadIdx.x / 32; task < batches * mine; task += blockDim.x / 32) {
    const int batch = task / mine, which = task - batch * mine, piece = first + which * g.walkers;
    const int chain = piece / pieces, v = piece % pieces * 32 + lane, time = batch * LOOKS, count = min((int)LOOKS, g.tiles - 1 - time);
    const word* const from = g.sum(chain, time, v);
    word* const to = g.start(chain, time + 1, v);
    const unsigned round = g.tag(run, time);
    word a[LOOKS], b[LOOKS];
    unsigned missing = !g.has(chain, v) ? 0 : 0xffffffffu >> 32 - count;
    int next = missing ? 0 : count;
    float state = 0;
    bool begun = false;
    for (patience left; __ballot_sync(0xffffffff, next < count);) {
      if (__ballot_sync(0xffffffff, missing)) {
#pragma unroll
        for (int i = 0; i < LOOKS; i++)
          if (missing >> i & 1) get_staying(a[i], b[i], from + (long long)i * 2 * g.values());
#pragma unroll
        for (int i = 0; i < LOOKS; i++)
          if (missing >> i & 1 && of(a[i], round) && of(b[i], round)) missing &= ~(1u << i);
      }
      if (!begun && !__ballot_sync(0xffffffff, get_here(done + which) < batch)) {
        begun = true;
        if (batch > 0) state = states[which * 32 + lane];
      }
      const int upto = !begun ? next : missing ? __ffs(missing) - 1 : count;
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (i >= next && i < upto) {
          state = number(a[i]) * state + number(b[i]);
          put_staying(g.further(to, time + 1, i), tagged(state, g.tag(run, time + 1 + i)));
        }
      next = upto;
      if (next < count && left.over(g.status)) missing = 0, next = count;
    }
    states[which * 32 + lane] = state;
    __syncwarp();
    if (lane == 0) put_here(done + which, batch + 1);
  }
}
#ifdef SAMPLE_WALK
#include "sample/walk_entry.cuh"
#endif
