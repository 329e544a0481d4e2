// What Go puts ahead of backward_block.cu for one kernel. TestSamples writes it with -update, of:
// ls-lstm 64 batch 8 steps 64 backward fp16 split=2 stepwise=false small
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, SAMPLES = 2, AHEAD = 4; };
#include "../backward_block.cuh"
#include "../recurrence.cu"
typedef fp16 W;
struct Cell : Quick {
  float* g_dnext0;
  int ld_g_dnext0;
  float* g_dnext1;
  int ld_g_dnext1;
  float* g_dnext2;
  int ld_g_dnext2;
  const float* g_dout;
  int ld_g_dout;
  const float* g_next1;
  int ld_g_next1;
  const float* g_saved;
  int ld_g_saved;
  const float* g_prev1;
  int ld_g_prev1;
  const float* g_prev2;
  int ld_g_prev2;
  fp16* g_dx;
  int ld_g_dx;
  const W* weights;
  enum { hidden = 64, GATES = 4, STATES = 3, THROUGH = 2, INPUTS = 10, READY = 11, RESULTS = 6 };
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u]);
    state[1] = widen(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u]);
    state[2] = widen(g_dnext2[(long long)(n) * ld_g_dnext2 + (long long)0 * hidden + u]);
  }
  __device__ void after(int n, int u, const float* state) const {
    narrow(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u], state[0]);
    narrow(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u], state[1]);
    narrow(g_dnext2[(long long)(n) * ld_g_dnext2 + (long long)0 * hidden + u], state[2]);
  }
  __device__ void input(int t, int batch, int n, int u, float* x) const {
    x[0] = widen(g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
    x[1] = widen(g_next1[(long long)((t + 1) * batch + n) * ld_g_next1 + (long long)0 * hidden + u]);
    x[2] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)5 * hidden + u]);
    x[3] = widen(g_prev1[(long long)(t * batch + n) * ld_g_prev1 + (long long)0 * hidden + u]);
    x[4] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)4 * hidden + u]);
    x[5] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)3 * hidden + u]);
    x[6] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)2 * hidden + u]);
    x[7] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)1 * hidden + u]);
    x[8] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)0 * hidden + u]);
    x[9] = widen(g_prev2[(long long)(t * batch + n) * ld_g_prev2 + (long long)0 * hidden + u]);
  }
  __device__ void store(int t, int batch, int n, int u, const float* kept) const {
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)2 * hidden + u], kept[0]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)0 * hidden + u], kept[1]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)3 * hidden + u], kept[2]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)1 * hidden + u], kept[3]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)5 * hidden + u], kept[4]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)4 * hidden + u], kept[5]);
  }
  __device__ static void early(const float* x, float* ready) {
    const float dout0 = x[0];
    const float next1 = x[1];
    const float saved5 = x[2];
    const float prev1 = x[3];
    const float saved4 = x[4];
    const float saved3 = x[5];
    const float saved2 = x[6];
    const float saved1 = x[7];
    const float saved0 = x[8];
    const float prev2 = x[9];
    float t13 = 1 - saved0;
    ready[0] = dout0;
    ready[1] = next1;
    ready[2] = saved5;
    ready[3] = prev1;
    ready[4] = saved4;
    ready[5] = saved3;
    ready[6] = saved2;
    ready[7] = saved1;
    ready[8] = t13;
    ready[9] = prev2;
    ready[10] = saved0;
  }
  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {
    const float dout0 = ready[0];
    const float next1 = ready[1];
    const float saved5 = ready[2];
    const float prev1 = ready[3];
    const float saved4 = ready[4];
    const float saved3 = ready[5];
    const float saved2 = ready[6];
    const float saved1 = ready[7];
    const float t13 = ready[8];
    const float prev2 = ready[9];
    const float saved0 = ready[10];
    float dnext0 = state[0];
    float dnext1 = state[1];
    float dnext2 = state[2];
    float t0 = dout0 + dnext0;
    float t1 = t0 * next1;
    float t2 = t0 * saved5;
    float t3 = dnext1 + t2;
    float dx2 = t1 * saved5 * (1 - saved5);
    float t5 = t3 * prev1;
    float dprev1 = t3 * saved4;
    float dx0 = t5 * saved4 * (1 - saved4);
    float t8 = t3 * saved3;
    float t9 = t3 * saved2;
    float dx3 = t9 * (1 - saved3 * saved3);
    float dx1 = t8 * saved2 * (1 - saved2);
    float t12 = dnext2 * saved1;
    float t14 = dnext2 * t13;
    float t15 = -t12;
    float t16 = dnext2 * prev2;
    float t17 = t15 + t16;
    float dprev2 = dnext2 * saved0;
    float dx5 = t14 * (1 - saved1 * saved1);
    float dx4 = t17 * saved0 * (1 - saved0);
    kept[0] = dx2;
    kept[1] = dx0;
    kept[2] = dx3;
    kept[3] = dx1;
    kept[4] = dx5;
    kept[5] = dx4;
    sent[0] = dx0;
    sent[1] = dx1;
    sent[2] = dx2;
    sent[3] = dx3;
    state[1] = dprev1;
    state[2] = dprev2;
  }
};
