// What Go puts behind mma_poll.cu for the kernel of sample/mma_poll.cuh.
extern "C" __global__ void __launch_bounds__(256, 1)
persistent_mma_poll_lstm_peephole_2048(int steps, int batch, unsigned* control, unsigned* status, const float* g_x, int ld_g_x, const float* g_bx, int ld_g_bx, const float* g_br, int ld_g_br, const float* g_p, int ld_g_p, const float* g_prev1, int ld_g_prev1, float* g_saved, int ld_g_saved, float* g_next1, int ld_g_next1, fp16* g_next0, int ld_g_next0, const fp16* g_prev0, int ld_g_prev0, const W* weights0, const W* weights1, const W* weights2, const W* weights3) {
  const Cell cell = {{}, g_x, ld_g_x, g_bx, ld_g_bx, g_br, ld_g_br, g_p, ld_g_p, g_prev1, ld_g_prev1, g_saved, ld_g_saved, g_next1, ld_g_next1, g_next0, ld_g_next0, g_prev0, ld_g_prev0, weights0, weights1, weights2, weights3};
  mma_poll_layer(cell, steps, batch, control, status);
}
