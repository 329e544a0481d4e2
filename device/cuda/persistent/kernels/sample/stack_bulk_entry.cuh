// What Go puts behind stack_bulk.cu for the kernel of sample/stack_bulk.cuh.
extern "C" __global__ void __launch_bounds__(384, 1)
stack_bulk_2_lstm_20(int steps, int batch, unsigned* control, unsigned* status, const float* g_x_0, int ld_g_x_0, const float* g_bx_0, int ld_g_bx_0, const float* g_br_0, int ld_g_br_0, const float* g_prev1_0, int ld_g_prev1_0, float* g_next1_0, int ld_g_next1_0, bf16* g_next0_0, int ld_g_next0_0, const bf16* g_prev0_0, int ld_g_prev0_0, const W* weights0_0, const W* weights1_0, const W* weights2_0, const W* weights3_0, const float* g_x_1, int ld_g_x_1, const float* g_bx_1, int ld_g_bx_1, const float* g_br_1, int ld_g_br_1, const float* g_prev1_1, int ld_g_prev1_1, float* g_next1_1, int ld_g_next1_1, bf16* g_next0_1, int ld_g_next0_1, const bf16* g_prev0_1, int ld_g_prev0_1, const W* weights0_1, const W* weights1_1, const W* weights2_1, const W* weights3_1, const W* beneath_1) {
  const int layer = blockIdx.x / BLOCKS % LAYERS;
  if (layer == 0) return stack_layer<true>(Cell{{}, g_x_0, ld_g_x_0, g_bx_0, ld_g_bx_0, g_br_0, ld_g_br_0, g_prev1_0, ld_g_prev1_0, g_next1_0, ld_g_next1_0, g_next0_0, ld_g_next0_0, g_prev0_0, ld_g_prev0_0, weights0_0, weights1_0, weights2_0, weights3_0}, (const W*)nullptr, layer, steps, batch, control, status);
  const Cell cell = Cell{{}, g_x_1, ld_g_x_1, g_bx_1, ld_g_bx_1, g_br_1, ld_g_br_1, g_prev1_1, ld_g_prev1_1, g_next1_1, ld_g_next1_1, g_next0_1, ld_g_next0_1, g_prev0_1, ld_g_prev0_1, weights0_1, weights1_1, weights2_1, weights3_1};
  const W* const beneath = beneath_1;
  stack_layer<false>(cell, beneath, layer, steps, batch, control, status);
}
