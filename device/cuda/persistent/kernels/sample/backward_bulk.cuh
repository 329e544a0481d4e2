// What Go puts ahead of backward_bulk.cu for one kernel. TestSamples writes it with -update, of:
// rnn-tanh 1536 batch 16 steps 16 backward fp32 share=2 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 1, CLUSTERS = 12, CLUSTER = 4, UNITS = 32, SAMPLES = 16, WARPS = 8, BAND = 16, HEIGHT = 1, SPLIT = 1, CHUNKS = 24, RESIDENT = 14, PASSING = 0, PORTION = 1, DEPTH = 0, KEPT = 0, SLOTS = 1, EXACT = 1, WORDED = 0, ORDERED = 0; };
#include "../backward_bulk.cuh"
#include "../recurrence.cu"
typedef float W;
struct Cell : Quick {
  float* g_dnext0;
  int ld_g_dnext0;
  const float* g_dout;
  int ld_g_dout;
  const float* g_next0;
  int ld_g_next0;
  float* g_dx;
  int ld_g_dx;
  const W* weights;
  enum { hidden = 1536, GATES = 1, STATES = 1, THROUGH = 0, INPUTS = 2, READY = 2, RESULTS = 1 };
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u]);
  }
  __device__ void after(int n, int u, const float* state) const {
    narrow(g_dnext0[(long long)(n) * ld_g_dnext0 + (long long)0 * hidden + u], state[0]);
  }
  __device__ void input(int t, int batch, int n, int u, float* x) const {
    x[0] = widen(g_dout[(long long)(t * batch + n) * ld_g_dout + (long long)0 * hidden + u]);
    x[1] = widen(g_next0[(long long)((t + 1) * batch + n) * ld_g_next0 + (long long)0 * hidden + u]);
  }
  __device__ void store(int t, int batch, int n, int u, const float* kept) const {
    narrow(g_dx[(long long)(t * batch + n) * ld_g_dx + (long long)0 * hidden + u], kept[0]);
  }
  __device__ static void early(const float* x, float* ready) {
    const float dout0 = x[0];
    const float next0 = x[1];
    ready[0] = dout0;
    ready[1] = next0;
  }
  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {
    const float dout0 = ready[0];
    const float next0 = ready[1];
    float dnext0 = state[0];
    float t0 = dout0 + dnext0;
    float dx0 = t0 * (1 - next0 * next0);
    kept[0] = dx0;
    sent[0] = dx0;
    state[0] = 0;
  }
};
#include "../fragments.cu"
#include "../ring.cu"
