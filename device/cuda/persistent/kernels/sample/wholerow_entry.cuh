// What Go puts behind wholerow.cu for the kernel of sample/wholerow.cuh.
extern "C" __global__ void __launch_bounds__(256, 1)
persistent_wholerow_ls_lstm_256(int steps, int batch, unsigned* control, unsigned* status, const float* g_x, int ld_g_x, const float* g_bx, int ld_g_bx, const bf16* g_prev2, int ld_g_prev2, const float* g_br, int ld_g_br, const float* g_prev1, int ld_g_prev1, float* g_saved, int ld_g_saved, bf16* g_next2, int ld_g_next2, float* g_next1, int ld_g_next1, float* g_next0, int ld_g_next0, const float* g_prev0, int ld_g_prev0, const W* weights0, const W* weights1, const W* weights2, const W* weights3) {
  const Cell cell = {{}, g_x, ld_g_x, g_bx, ld_g_bx, g_prev2, ld_g_prev2, g_br, ld_g_br, g_prev1, ld_g_prev1, g_saved, ld_g_saved, g_next2, ld_g_next2, g_next1, ld_g_next1, g_next0, ld_g_next0, g_prev0, ld_g_prev0, weights0, weights1, weights2, weights3};
  wholerow_layer(cell, steps, batch, control, status);
}
