// What Go puts ahead of backward_wide.cu for one kernel. TestSamples writes it with -update, of:
// lstm 2304 batch 32 steps 16 backward bf16 wideback=1 h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 1, CLUSTERS = 12, CLUSTER = 8, UNITS = 24, SAMPLES = 32, WARPGROUPS = 3, HEIGHT = 1, PRODUCTS = 72, HELD = 15, PASSING = 42, ROUND = 12, KEPT = 42, PORTION = 6, DEPTH = 4, MORE = 152, FEWER = 56; };
#include "../backward_wide.cuh"
#include "../recurrence.cu"
typedef bf16 W;
struct Cell : Coarse {
  float* g_dnext0;
  int ld_g_dnext0;
  float* g_dnext1;
  int ld_g_dnext1;
  const float* g_dout;
  int ld_g_dout;
  const float* g_next1;
  int ld_g_next1;
  const float* g_saved;
  int ld_g_saved;
  const float* g_prev1;
  int ld_g_prev1;
  bf16* g_dx;
  int ld_g_dx;
  const W* weights;
  enum { hidden = 2304, GATES = 4, STATES = 2, THROUGH = 0, INPUTS = 7, READY = 7, RESULTS = 4 };
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u]);
    state[1] = widen(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u]);
  }
  __device__ void after(int n, int u, const float* state) const {
    narrow(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u], state[0]);
    narrow(g_dnext1[(long long)(n) * ld_g_dnext1 + (long long)0 * hidden + u], state[1]);
  }
  __device__ void input(int t, int batch, int n, int u, float* x) const {
    x[0] = widen(g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
    x[1] = widen(g_next1[(long long)((t + 1) * batch + n) * ld_g_next1 + (long long)0 * hidden + u]);
    x[2] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)3 * hidden + u]);
    x[3] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)2 * hidden + u]);
    x[4] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)0 * hidden + u]);
    x[5] = widen(g_prev1[(long long)(t * batch + n) * ld_g_prev1 + (long long)0 * hidden + u]);
    x[6] = widen(g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)1 * hidden + u]);
  }
  __device__ void ahead(int t, int batch, int n, int u) const {
    prefetch(&g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
    prefetch(&g_next1[(long long)((t + 1) * batch + n) * ld_g_next1 + (long long)0 * hidden + u]);
    prefetch(&g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)3 * hidden + u]);
    prefetch(&g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)2 * hidden + u]);
    prefetch(&g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)0 * hidden + u]);
    prefetch(&g_prev1[(long long)(t * batch + n) * ld_g_prev1 + (long long)0 * hidden + u]);
    prefetch(&g_saved[(long long)(t * batch + n) * ld_g_saved + (long long)1 * hidden + u]);
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
    const float saved2 = x[3];
    const float saved0 = x[4];
    const float prev1 = x[5];
    const float saved1 = x[6];
    float t1 = tanhf(next1);
    ready[0] = dout0;
    ready[1] = t1;
    ready[2] = saved3;
    ready[3] = saved2;
    ready[4] = saved0;
    ready[5] = prev1;
    ready[6] = saved1;
  }
  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {
    const float dout0 = ready[0];
    const float t1 = ready[1];
    const float saved3 = ready[2];
    const float saved2 = ready[3];
    const float saved0 = ready[4];
    const float prev1 = ready[5];
    const float saved1 = ready[6];
    float dnext0 = state[0];
    float dnext1 = state[1];
    float t0 = dout0 + dnext0;
    float t2 = t0 * t1;
    float t3 = t0 * saved3;
    float t4 = t3 * (1 - t1 * t1);
    float t5 = dnext1 + t4;
    float t6 = t5 * saved2;
    float t7 = t5 * saved0;
    float t8 = t5 * prev1;
    float dprev1 = t5 * saved1;
    float dx3 = t2 * saved3 * (1 - saved3);
    float dx2 = t7 * (1 - saved2 * saved2);
    float dx1 = t8 * saved1 * (1 - saved1);
    float dx0 = t6 * saved0 * (1 - saved0);
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
  }
};
#include "../ring.cu"
