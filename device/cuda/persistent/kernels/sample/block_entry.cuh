// What Go puts behind block.cu for the kernel of sample/block.cuh.
extern "C" __global__ void __launch_bounds__(96, 1)
persistent_block_rnn_relu_20(int steps, int batch, unsigned* control, unsigned* status, const float* g_x, int ld_g_x, const float* g_bx, int ld_g_bx, const float* g_br, int ld_g_br, fp16* g_next0, int ld_g_next0, const fp16* g_prev0, int ld_g_prev0, const W* weights0) {
  const Cell cell = {{}, g_x, ld_g_x, g_bx, ld_g_bx, g_br, ld_g_br, g_next0, ld_g_next0, g_prev0, ld_g_prev0, weights0};
  block_layer(cell, steps, batch, control, status);
}
