#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/moves.cuh"
#endif
// Rows of a matrix, and where they lie in memory of the host program: one after another, or row r
// offsets[r] elements behind host. Elements are float (0), bf16 (1) or fp16 (2).
struct moved {
  void* host;
  void* matrix;
  const unsigned* offsets; // null: none; NOWHERE: the row has no memory there
  int rows, cols, codes, first; // first: the first block of these rows
  __device__ __forceinline__ int there() const { return codes & 3; }
  __device__ __forceinline__ int here() const { return codes >> 2 & 3; }
  __device__ __forceinline__ bool out() const { return codes & 16; }
  __device__ __forceinline__ bool quads() const { return codes & 32; } // four elements at once
};
const unsigned NOWHERE = 0xffffffffu;
struct list { moved of[MOVES]; };

template <int N> __device__ __forceinline__ void get(float* to, const void* from, int element, long long at) {
  if (element == 0) load<N>(to, (const float*)from + at);
  else if (element == 1) load<N>(to, (const bf16*)from + at);
  else load<N>(to, (const fp16*)from + at);
}
template <int N> __device__ __forceinline__ void put(void* to, const float* from, int element, long long at) {
  if (element == 0) store<N>((float*)to + at, from);
  else if (element == 1) store<N>((bf16*)to + at, from);
  else store<N>((fp16*)to + at, from);
}

// copy copies N elements from element i of the rows on.
template <int N> __device__ __forceinline__ void copy(const moved& s, unsigned i) {
  const unsigned offset = s.offsets ? s.offsets[i / s.cols] : 0;
  const bool nowhere = s.offsets && offset == NOWHERE;
  const long long at = s.offsets ? (long long)offset + i % s.cols : i;
  float v[N] = {};
  if (s.out()) {
    if (nowhere) return;
    get<N>(v, s.matrix, s.here(), i);
    put<N>(s.host, v, s.there(), at);
    return;
  }
  if (s.host && !nowhere) get<N>(v, s.host, s.there(), at);
  put<N>(s.matrix, v, s.here(), i);
}

// moves: copies n lists of rows in or out. No address of the host program: zeros come in, and
// nothing goes out. Unless report is status, it leaves the status word there.
extern "C" __global__ void __launch_bounds__(256) moves(int n, const unsigned* status, unsigned* report, const __grid_constant__ list all) {
  if (report != status && blockIdx.x == 0 && threadIdx.x == 0) *report = *status;
  int at = 0;
  for (int after = n; after - at > 1;) {
    const int middle = (at + after) / 2;
    if (all.of[middle].first <= blockIdx.x) at = middle; else after = middle;
  }
  const moved& s = all.of[at];
  if (s.out() && !s.host) return;
  const unsigned step = 256 * ((at + 1 < n ? all.of[at + 1].first : gridDim.x) - s.first), me = 256 * (blockIdx.x - s.first) + threadIdx.x;
  const unsigned count = (unsigned)s.rows * s.cols, vectors = s.quads() ? count / 4 : 0;
  for (unsigned i = me; i < vectors; i += step) copy<4>(s, 4 * i);
  for (unsigned i = 4 * vectors + me; i < count; i += step) copy<1>(s, i);
}
