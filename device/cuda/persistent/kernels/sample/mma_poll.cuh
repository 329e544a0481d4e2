// What Go puts ahead of mma_poll.cu for one kernel. TestSamples writes it with -update, of:
// lstm-peephole 2048 batch 8 steps 2 train fp16 tensor=1 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 1, CLUSTER = 128, UNITS = 16, SEQUENCES = 8, SAMPLES = 8, BAND = 16, SPLIT = 8, CHUNKS = 8, RESIDENT = 3, EXACT = 0, PARTS = 1, BOUNDED = 1, ORDERED = 1, CLOCKS = 0; };
#include "../mma_layer.cuh"
#include "../mma_poll.cuh"
#include "../recurrence.cu"
typedef fp16 W;
struct Cell : Quick {
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const float* g_br;
  int ld_g_br;
  const float* g_p;
  int ld_g_p;
  const float* g_prev1;
  int ld_g_prev1;
  float* g_saved;
  int ld_g_saved;
  float* g_next1;
  int ld_g_next1;
  fp16* g_next0;
  int ld_g_next0;
  const fp16* g_prev0;
  int ld_g_prev0;
  const W* weights0;
  const W* weights1;
  const W* weights2;
  const W* weights3;
  enum { hidden = 2048, GATES = 4, SLOTS = 4, STATES = 2, THROUGH = 0, FREE = 0, CONSTANTS = 3, SAVED = 4 };
  __device__ const W* weights(int g) const { return g == 1 ? weights1 : g == 2 ? weights2 : g == 3 ? weights3 : weights0; }
  __device__ static bool owns(int g) { return g == 0 ? true : g == 1 ? true : g == 2 ? true : g == 3 ? true : false; }
  typedef float Input;
  __device__ static long long at(int g) { return (long long)g * hidden; }
  __device__ const Input* input(int g, int n, int u) const { return g_x + (long long)n * ld_g_x + at(g) + u; }
  __device__ long long stride(int batch) const { return (long long)batch * ld_g_x; }
  __device__ static constexpr bool flag(int g) { return false; }
  __device__ const float* kept(int t, int batch, int n) const { return nullptr; }
  __device__ long long kept_stride(int batch) const { return 0; }
  __device__ float value(const Input* step, int g, int t, int batch, int n) const { return widen(step[at(g)]); }
  __device__ static int free(int i) { return 0; }
  __device__ float bias(int g, int u) const { return g == 0 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)0 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)0 * hidden + u]) : g == 1 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)1 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)1 * hidden + u]) : g == 2 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)2 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)2 * hidden + u]) : g == 3 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)3 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)3 * hidden + u]) : 0; }
  __device__ void constants(int u, float* k) const { k[0] = widen(g_p[(long long)(0) * ld_g_p + (long long)0 * hidden + u]); k[1] = widen(g_p[(long long)(0) * ld_g_p + (long long)1 * hidden + u]); k[2] = widen(g_p[(long long)(0) * ld_g_p + (long long)2 * hidden + u]); }
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_prev0[(long long)(n) * ld_g_prev0 + (long long)0 * hidden + u]);
    state[1] = widen(g_prev1[(long long)(n) * ld_g_prev1 + (long long)0 * hidden + u]);
  }
  __device__ static float early(int g, float z) { return (g == 2 ? true : false) ? tanhf(z) : z; }
  __device__ static void rest(const float* gate, const float* input, const float* k, float* state, float* saved) {
    const float r0 = gate[0];
    const float r1 = gate[1];
    const float r2 = gate[2];
    const float r3 = gate[3];
    const float p0 = k[0];
    const float p1 = k[1];
    const float p2 = k[2];
    const float prev1 = state[1];
    float t1 = r0;
    float t0 = p0 * prev1;
    t0 = t1 + t0;
    float saved0 = sigmoid(t0);
    t1 = r1;
    t0 = p1 * prev1;
    t0 = t1 + t0;
    float saved1 = sigmoid(t0);
    float saved2 = r2;
    t1 = saved1 * prev1;
    t0 = saved0 * saved2;
    float next1 = t1 + t0;
    t1 = r3;
    t0 = p2 * next1;
    t0 = t1 + t0;
    float saved3 = sigmoid(t0);
    t0 = tanhf(next1);
    float next0 = saved3 * t0;
    saved[0] = saved0;
    saved[1] = saved1;
    saved[2] = saved2;
    state[1] = next1;
    saved[3] = saved3;
    state[0] = next0;
  }
  enum { RESULTS = 6 };
  __device__ static float result(int i, const float* state, const float* saved) { return i == 0 ? saved[0] : i == 1 ? saved[1] : i == 2 ? saved[2] : i == 3 ? state[1] : i == 4 ? saved[3] : state[0]; }
  __device__ char* place(int i, int batch, int n, int u) const { return i == 0 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)0 * hidden + u] : i == 1 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)1 * hidden + u] : i == 2 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)2 * hidden + u] : i == 3 ? (char*)&g_next1[(long long)(batch + n) * ld_g_next1 + (long long)0 * hidden + u] : i == 4 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)3 * hidden + u] : (char*)&g_next0[(long long)(batch + n) * ld_g_next0 + (long long)0 * hidden + u]; }
  __device__ long long apart(int i, int batch) const { return (long long)batch * (i == 0 ? ld_g_saved * 4 : i == 1 ? ld_g_saved * 4 : i == 2 ? ld_g_saved * 4 : i == 3 ? ld_g_next1 * 4 : i == 4 ? ld_g_saved * 4 : ld_g_next0 * 2); }
  __device__ static void put(int i, char* to, float v) {
    if (i == 0 ? true : i == 1 ? true : i == 2 ? true : i == 3 ? true : i == 4 ? true : false) narrow(*(float*)to, v);
    if (i == 0 ? false : i == 1 ? false : i == 2 ? false : i == 3 ? false : i == 4 ? false : true) narrow(*(fp16*)to, v);
  }
};
#include "../fragments.cu"
#include "../mma_layer.cu"
