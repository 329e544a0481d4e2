// What Go puts behind backward_bulk.cu for the kernel of sample/backward_bulk.cuh.
extern "C" __global__ void __launch_bounds__(256, 1)
persistent_backward_bulk_rnn_tanh_1536(int steps, int batch, unsigned* control, unsigned* status, float* g_dnext0, int ld_g_dnext0, const float* g_dout, int ld_g_dout, const float* g_next0, int ld_g_next0, float* g_dx, int ld_g_dx, const W* weights) {
  const Cell cell = {{}, g_dnext0, ld_g_dnext0, g_dout, ld_g_dout, g_next0, ld_g_next0, g_dx, ld_g_dx, weights};
  back_layer(cell, steps, batch, control, status);
}
