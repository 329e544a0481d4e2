// What Go puts behind backward_simt.cu for the kernel of sample/backward_simt.cuh.
#include "../backward.cu"
extern "C" __global__ void __launch_bounds__(256, 1)
persistent_backward_simt_lstm_peephole_700(int steps, int batch, unsigned* control, unsigned* status, float* g_dnext0, int ld_g_dnext0, float* g_dnext1, int ld_g_dnext1, float* g_dp, int ld_g_dp, const float* g_dout, int ld_g_dout, const float* g_next1, int ld_g_next1, const float* g_saved, int ld_g_saved, const float* g_p, int ld_g_p, const float* g_prev1, int ld_g_prev1, float* g_dx, int ld_g_dx, const W* weights) {
  const Cell cell = {{}, g_dnext0, ld_g_dnext0, g_dnext1, ld_g_dnext1, g_dp, ld_g_dp, g_dout, ld_g_dout, g_next1, ld_g_next1, g_saved, ld_g_saved, g_p, ld_g_p, g_prev1, ld_g_prev1, g_dx, ld_g_dx, weights};
  back_layer(cell, steps, batch, control, status);
}
