// What Go puts ahead of simt.cu for one kernel. TestSamples writes it with -update, of:
// ls-lstm 64 batch 128 steps 2 tf32  stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, CLUSTER = 1, UNITS = 64, SAMPLES = 1, TILE = 1, LANES = 4, CHUNKS = 4, RESIDENT = 4, SETTLED = 1, ORDERED = 1, CLOCKS = 0; };
#include "../simt.cuh"
#include "../recurrence.cu"
typedef float W;
struct Cell : Quick {
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const float* g_prev2;
  int ld_g_prev2;
  const float* g_br;
  int ld_g_br;
  const float* g_prev1;
  int ld_g_prev1;
  float* g_next2;
  int ld_g_next2;
  float* g_next1;
  int ld_g_next1;
  float* g_next0;
  int ld_g_next0;
  const float* g_prev0;
  int ld_g_prev0;
  const W* weights0;
  const W* weights1;
  const W* weights2;
  const W* weights3;
  enum { hidden = 64, GATES = 4, SLOTS = 4, STATES = 3, THROUGH = 2, FREE = 2, CONSTANTS = 2, SAVED = 0 };
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
  __device__ static int free(int i) { return i == 0 ? 4 : i == 1 ? 5 : 0; }
  __device__ float bias(int g, int u) const { return g == 0 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)0 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)0 * hidden + u]) : g == 1 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)1 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)1 * hidden + u]) : g == 2 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)2 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)2 * hidden + u]) : g == 3 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)3 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)3 * hidden + u]) : 0; }
  __device__ void constants(int u, float* k) const { k[0] = widen(g_bx[(long long)(0) * ld_g_bx + (long long)4 * hidden + u]); k[1] = widen(g_bx[(long long)(0) * ld_g_bx + (long long)5 * hidden + u]); }
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_prev0[(long long)(n) * ld_g_prev0 + (long long)0 * hidden + u]);
    state[1] = widen(g_prev1[(long long)(n) * ld_g_prev1 + (long long)0 * hidden + u]);
    state[2] = widen(g_prev2[(long long)(n) * ld_g_prev2 + (long long)0 * hidden + u]);
  }
  __device__ static float early(int g, float z) { return squash(z, g == 3 ? true : false); }
  __device__ static void rest(const float* gate, const float* input, const float* k, float* state, float* saved) {
    const float r1 = gate[1];
    const float r3 = gate[3];
    const float r0 = gate[0];
    const float r2 = gate[2];
    const float x4 = input[0];
    const float x5 = input[1];
    const float bx4 = k[0];
    const float bx5 = k[1];
    const float prev2 = state[2];
    const float prev1 = state[1];
    float t0 = x4 + bx4;
    t0 = sigmoid(t0);
    float t1 = x5 + bx5;
    t1 = tanhf(t1);
    float t2 = t0 * prev2;
    t0 = 1 - t0;
    t1 = t0 * t1;
    float next2 = t2 + t1;
    t2 = r1;
    t0 = r3;
    t0 = t2 * t0;
    t1 = r0;
    t1 = t1 * prev1;
    float next1 = t1 + t0;
    t1 = r2;
    float next0 = t1 * next1;
    state[2] = next2;
    state[1] = next1;
    state[0] = next0;
  }
  enum { RESULTS = 3 };
  __device__ static float result(int i, const float* state, const float* saved) { return i == 0 ? state[2] : i == 1 ? state[1] : state[0]; }
  __device__ char* place(int i, int batch, int n, int u) const { return i == 0 ? (char*)&g_next2[(long long)(batch + n) * ld_g_next2 + (long long)0 * hidden + u] : i == 1 ? (char*)&g_next1[(long long)(batch + n) * ld_g_next1 + (long long)0 * hidden + u] : (char*)&g_next0[(long long)(batch + n) * ld_g_next0 + (long long)0 * hidden + u]; }
  __device__ long long apart(int i, int batch) const { return (long long)batch * (i == 0 ? ld_g_next2 * 4 : i == 1 ? ld_g_next1 * 4 : ld_g_next0 * 4); }
  __device__ static void put(int i, char* to, float v) {
    if (i == 0 ? true : i == 1 ? true : true) narrow(*(float*)to, v);
  }
};
