#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_RING
#include "sample/ring.cuh"
#endif
// A Ring copies a warp's weights from memory to shared memory: COPIES copies per round, and then
// the first again. It has places for DEPTH copies of QUADS each. The L2 cache is asked to keep the
// first KEPT of them.
template <int COPIES, int DEPTH, int QUADS, int KEPT = COPIES> struct Ring {
  const quad* from;    // [COPIES][QUADS]
  quad* slots;         // [DEPTH][QUADS]
  shared_t bars;       // [DEPTH], of 8 bytes
  int left, slot, phase; // copies still to be started; the place of the next to be read
  bool stuck;
  // begin starts the first of all copies. The warp has written what they copy.
  __device__ __forceinline__ void begin(const quad* memory, quad* shared, shared_t barriers, int copies, int lane) {
    from = memory, slots = shared, bars = barriers, left = copies, slot = 0, phase = 0, stuck = false;
    if (lane == 0) {
      for (int i = 0; i < DEPTH; i++) bar_init(bars + 8 * i, 1);
      bar_publish();
    }
    __syncwarp();
    for (int i = 0; i < DEPTH && left > 0; i++, left--)
      if (lane == 0) {
        bar_arrive(bars + 8 * i, QUADS * 16);
        copy_bulk(shared_address(slots + i * QUADS), from + i % COPIES * QUADS, QUADS * 16, bars + 8 * i);
      }
  }
  // here is the place of the current copy. wait waits for it, or for one a few (behind) later.
  __device__ __forceinline__ const quad* here() const { return slots + slot * QUADS; }
  __device__ __forceinline__ const quad* wait(unsigned* status, int behind = 0) {
    const bool round = slot + behind >= DEPTH;
    const shared_t bar = bars + 8 * (round ? slot + behind - DEPTH : slot + behind);
    const int of = round ? phase ^ 1 : phase;
    if (!stuck && !__all_sync(0xffffffff, bar_try(bar, of)) && !arrived(bar, of)) *status = STUCK, stuck = true;
    return here();
  }
  // next starts the copy DEPTH after this one, number copy of the round, into its place.
  __device__ __forceinline__ void next(int copy, int lane) {
    leave();
    refill(copy, lane);
  }
  // leave moves on to the next copy. It starts none into the place that it left.
  __device__ __forceinline__ void leave() {
    __syncwarp();  // all lanes have read it
    if (++slot == DEPTH) slot = 0, phase ^= 1;
  }
  // latest is the place of the copy that was left last, or some (before) earlier. refill starts a
  // copy into it; the one there was number copy of the round.
  __device__ __forceinline__ int latest(int before = 0) const { return slot <= before ? slot + DEPTH - 1 - before : slot - 1 - before; }
  __device__ __forceinline__ void refill(int copy, int lane, int before = 0) {
    if (left <= 0) return;
    if (lane == 0) {
      const shared_t to = shared_address(slots + latest(before) * QUADS), bar = bars + 8 * latest(before);
      bar_arrive(bar, QUADS * 16);
      const int next = (copy + DEPTH) % COPIES;
      if (KEPT < COPIES) read_bulk(to, from + next * QUADS, QUADS * 16, bar, next < KEPT);
      else read_bulk(to, from + next * QUADS, QUADS * 16, bar);
    }
    left--;
  }
};

// Tiers says which of ALL parts of a warp's weights come through a ring: first as many as it holds,
// and the rest evenly spread among the others.
template <int ALL, int STREAMED, int HELD> struct Tiers {
  static constexpr int FIRST = STREAMED < HELD ? STREAMED : HELD;
  // streamed_before returns how many of the parts before this one are streamed.
  static __device__ constexpr int streamed_before(int part) {
    return part <= FIRST ? part : FIRST + (part - FIRST) * (STREAMED - FIRST) / (ALL > FIRST ? ALL - FIRST : 1);
  }
  static __device__ constexpr bool streamed(int part) { return streamed_before(part + 1) > streamed_before(part); }
  // resident is the n-th part that is not streamed, and passing the n-th that is.
  static __device__ constexpr int resident(int n) {
    int part = n;
    while (STREAMED > 0 && (streamed(part) || part - streamed_before(part) < n)) part++;
    return part;
  }
  static __device__ constexpr int passing(int n) {
    int part = n;
    while (!streamed(part) || streamed_before(part) < n) part++;
    return part;
  }
};
#ifdef SAMPLE_RING
#include "sample/ring_entry.cuh"
#endif
