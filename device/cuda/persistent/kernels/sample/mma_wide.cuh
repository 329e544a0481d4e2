// What Go puts ahead of mma_wide.cu for one kernel. TestSamples writes it with -update, of:
// lstm 1024 batch 300 steps 16 bf16 clocks=1 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 1, CLUSTER = 64, COPIERS = 2, PARTNERS = 1, UNITS = 16, BAND = 4, SAMPLES = 160, PRODUCTS = 32, HELD = 24, PORTION = 2, DEPTH = 6, MORE = 232, FEWER = 40, EXACT = 0, ORDERED = 1, CLOCKS = 1; };
#include "../mma_wide.cuh"
#include "../recurrence.cu"
typedef bf16 W;
struct Cell : Coarse {
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const float* g_br;
  int ld_g_br;
  const float* g_prev1;
  int ld_g_prev1;
  float* g_next1;
  int ld_g_next1;
  bf16* g_next0;
  int ld_g_next0;
  const bf16* g_prev0;
  int ld_g_prev0;
  const W* weights0;
  const W* weights1;
  const W* weights2;
  const W* weights3;
  enum { hidden = 1024, GATES = 4, SLOTS = 4, STATES = 2, THROUGH = 0, FREE = 0, CONSTANTS = 0, SAVED = 0 };
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
  __device__ void constants(int u, float* k) const { }
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_prev0[(long long)(n) * ld_g_prev0 + (long long)0 * hidden + u]);
    state[1] = widen(g_prev1[(long long)(n) * ld_g_prev1 + (long long)0 * hidden + u]);
  }
  __device__ static float early(int g, float z) { return squash(z, g == 2 ? true : false); }
  __device__ static void rest(const float* gate, const float* input, const float* k, float* state, float* saved) {
    const float r0 = gate[0];
    const float r1 = gate[1];
    const float r2 = gate[2];
    const float r3 = gate[3];
    const float prev1 = state[1];
    float t1 = r0;
    float t2 = r1;
    float t3 = r2;
    float t4 = r3;
    t2 = t2 * prev1;
    t3 = t1 * t3;
    float next1 = t2 + t3;
    t3 = tanhf(next1);
    float next0 = t4 * t3;
    state[1] = next1;
    state[0] = next0;
  }
  enum { RESULTS = 2 };
  __device__ static float result(int i, const float* state, const float* saved) { return i == 0 ? state[1] : state[0]; }
  __device__ char* place(int i, int batch, int n, int u) const { return i == 0 ? (char*)&g_next1[(long long)(batch + n) * ld_g_next1 + (long long)0 * hidden + u] : (char*)&g_next0[(long long)(batch + n) * ld_g_next0 + (long long)0 * hidden + u]; }
  __device__ long long apart(int i, int batch) const { return (long long)batch * (i == 0 ? ld_g_next1 * 4 : ld_g_next0 * 2); }
  __device__ static void put(int i, char* to, float v) {
    if (i == 0 ? true : false) narrow(*(float*)to, v);
    if (i == 0 ? false : true) narrow(*(bf16*)to, v);
  }
};
#include "../fragments.cu"
