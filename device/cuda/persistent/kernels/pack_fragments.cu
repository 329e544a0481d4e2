#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/pack_fragments.cuh"
#endif
// arrange packs weights of hidden columns for hidden units as lanes read them: for 16 units, for
// each 64 bytes of columns, both halves of each lane of a warp. The weight of column k and unit u
// is at from[k · column + u · unit]. The next gate's weights follow.
extern "C" __global__ void __launch_bounds__(256) arrange(int hidden, const FROM* from, long long column, long long unit, quad* to, unsigned* status) {
  const int wide = (hidden * SIZE + 63) / 64, quads = (hidden + 15) / 16 * wide * 64;
  const int q = blockIdx.x * blockDim.x + threadIdx.x, lane = q % 32;
  if (q >= quads) return;
  from += (long long)blockIdx.y * hidden * unit, to += (long long)blockIdx.y * quads;
  auto weight = [&](int k, int u) { return k < hidden && u < hidden ? widen(from[k * column + u * unit]) : 0.f; };
  to[q] = fragment(weight, q / 64 / wide * 16 + lane / 4 * 2, (q / 64 % wide * 4 + lane % 4) * FEW, q / 32 % 2, status);
}
