// What Go puts ahead of backward.cu for one kernel. TestSamples writes it with -update, of:
// lstm-peephole 700 batch 1 steps 7 backward fp32 narrow=1 stepwise=false next
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 1, CLUSTERS = 117, CLUSTER = 1, UNITS = 6, SAMPLES = 1, WARPS = 8, CHUNKS = 3, RESIDENT = 6, SAME = 16, OUT = 4, LANES = 2; };
#include "../backward.cuh"
#include "../backward_simt.cuh"
#include "../recurrence.cu"
typedef float W;
struct Cell : Quick {
  float* g_dnext0;
  int ld_g_dnext0;
  float* g_dnext1;
  int ld_g_dnext1;
  float* g_dp;
  int ld_g_dp;
  const float* g_dout;
  int ld_g_dout;
  const float* g_next1;
  int ld_g_next1;
  const float* g_saved;
  int ld_g_saved;
  const float* g_p;
  int ld_g_p;
  const float* g_prev1;
  int ld_g_prev1;
  float* g_dx;
  int ld_g_dx;
  const W* weights;
  enum { hidden = 700, GATES = 4, STATES = 5, THROUGH = 0, INPUTS = 10, READY = 11, RESULTS = 4 };
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u]);
    state[1] = widen(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u]);
    state[2] = widen(g_dp[(long long)(n) * ld_g_dp + (long long)0 * hidden + u]);
    state[3] = widen(g_dp[(long long)(n) * ld_g_dp + (long long)1 * hidden + u]);
    state[4] = widen(g_dp[(long long)(n) * ld_g_dp + (long long)2 * hidden + u]);
  }
  __device__ void after(int n, int u, const float* state) const {
    narrow(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u], state[0]);
    narrow(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u], state[1]);
    narrow(g_dp[(long long)(n) * ld_g_dp + (long long)0 * hidden + u], state[2]);
    narrow(g_dp[(long long)(n) * ld_g_dp + (long long)1 * hidden + u], state[3]);
    narrow(g_dp[(long long)(n) * ld_g_dp + (long long)2 * hidden + u], state[4]);
  }
  __device__ void input(int t, int batch, int n, int u, float* x) const {
    x[0] = widen(g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
    x[1] = widen(g_next1[(long long)((t + 1) * batch + n) * ld_g_next1 + (long long)0 * hidden + u]);
    x[2] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)3 * hidden + u]);
    x[3] = widen(g_p[(long long)(0) * ld_g_p + (long long)2 * hidden + u]);
    x[4] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)2 * hidden + u]);
    x[5] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)0 * hidden + u]);
    x[6] = widen(g_prev1[(long long)(t * batch + n) * ld_g_prev1 + (long long)0 * hidden + u]);
    x[7] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)1 * hidden + u]);
    x[8] = widen(g_p[(long long)(0) * ld_g_p + (long long)1 * hidden + u]);
    x[9] = widen(g_p[(long long)(0) * ld_g_p + (long long)0 * hidden + u]);
  }
  __device__ void store(int t, int batch, int n, int u, const float* kept) const {
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)3 * hidden + u], kept[0]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)2 * hidden + u], kept[1]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)1 * hidden + u], kept[2]);
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)0 * hidden + u], kept[3]);
  }
  __device__ static void early(const float* x, float* ready) {
    const float dout0 = x[0];
    const float next1 = x[1];
    const float saved3 = x[2];
    const float p2 = x[3];
    const float saved2 = x[4];
    const float saved0 = x[5];
    const float prev1 = x[6];
    const float saved1 = x[7];
    const float p1 = x[8];
    const float p0 = x[9];
    float t1 = tanhf(next1);
    ready[0] = dout0;
    ready[1] = t1;
    ready[2] = saved3;
    ready[3] = next1;
    ready[4] = p2;
    ready[5] = saved2;
    ready[6] = saved0;
    ready[7] = prev1;
    ready[8] = saved1;
    ready[9] = p1;
    ready[10] = p0;
  }
  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {
    const float dout0 = ready[0];
    const float t1 = ready[1];
    const float saved3 = ready[2];
    const float next1 = ready[3];
    const float p2 = ready[4];
    const float saved2 = ready[5];
    const float saved0 = ready[6];
    const float prev1 = ready[7];
    const float saved1 = ready[8];
    const float p1 = ready[9];
    const float p0 = ready[10];
    float dnext0 = state[0];
    float dnext1 = state[1];
    float dp0 = state[2];
    float dp1 = state[3];
    float dp2 = state[4];
    float t0 = dout0 + dnext0;
    float t2 = t0 * t1;
    float t3 = t0 * saved3;
    float t4 = t3 * (1 - t1 * t1);
    float t5 = dnext1 + t4;
    float dx3 = t2 * saved3 * (1 - saved3);
    float t7 = dx3 * next1;
    float t8 = dx3 * p2;
    float t9 = t5 + t8;
    float t10 = t9 * saved2;
    float t11 = t9 * saved0;
    float t12 = t9 * prev1;
    float t13 = t9 * saved1;
    float dx2 = t11 * (1 - saved2 * saved2);
    float dx1 = t12 * saved1 * (1 - saved1);
    float t16 = dx1 * prev1;
    float t17 = dx1 * p1;
    float t18 = t13 + t17;
    float dx0 = t10 * saved0 * (1 - saved0);
    float t20 = dx0 * prev1;
    float t21 = dx0 * p0;
    float dprev1 = t18 + t21;
    dp0 = dp0 + t20;
    dp1 = dp1 + t16;
    dp2 = dp2 + t7;
    kept[0] = dx3;
    kept[1] = dx2;
    kept[2] = dx1;
    kept[3] = dx0;
    sent[0] = dx0;
    sent[1] = dx1;
    sent[2] = dx2;
    sent[3] = dx3;
    state[0] = 0;
    state[1] = dprev1;
    state[2] = dp0;
    state[3] = dp1;
    state[4] = dp2;
  }
};
#include "../backward_simt.cu"
