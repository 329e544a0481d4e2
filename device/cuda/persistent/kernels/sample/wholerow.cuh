// What Go puts ahead of wholerow.cu for one kernel. TestSamples writes it with -update, of:
// ls-lstm 256 batch 128 steps 7 train bf16 resident=6 stepwise=false next
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, CLUSTER = 8, UNITS = 32, SEQUENCES = 8, BAND = 4, EXACT = 0, BOUNDED = 0, ORDERED = 1, CLOCKS = 0; };
#include "../wholerow.cuh"
#include "../recurrence.cu"
typedef bf16 W;
struct Cell : Coarse {
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const bf16* g_prev2;
  int ld_g_prev2;
  const float* g_br;
  int ld_g_br;
  const float* g_prev1;
  int ld_g_prev1;
  float* g_saved;
  int ld_g_saved;
  bf16* g_next2;
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
  enum { hidden = 256, GATES = 4, SLOTS = 4, STATES = 3, THROUGH = 2, FREE = 2, CONSTANTS = 2, SAVED = 6 };
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
    float saved0 = sigmoid(t0);
    t0 = x5 + bx5;
    float saved1 = tanhf(t0);
    t0 = saved0 * prev2;
    float t1 = 1 - saved0;
    t1 = t1 * saved1;
    float next2 = t0 + t1;
    float saved2 = r1;
    float saved3 = r3;
    t1 = saved2 * saved3;
    float saved4 = r0;
    float t2 = saved4 * prev1;
    float next1 = t2 + t1;
    float saved5 = r2;
    float next0 = saved5 * next1;
    saved[0] = saved0;
    saved[1] = saved1;
    state[2] = next2;
    saved[2] = saved2;
    saved[3] = saved3;
    saved[4] = saved4;
    state[1] = next1;
    saved[5] = saved5;
    state[0] = next0;
  }
  enum { RESULTS = 9 };
  __device__ static float result(int i, const float* state, const float* saved) { return i == 0 ? saved[0] : i == 1 ? saved[1] : i == 2 ? state[2] : i == 3 ? saved[2] : i == 4 ? saved[3] : i == 5 ? saved[4] : i == 6 ? state[1] : i == 7 ? saved[5] : state[0]; }
  __device__ char* place(int i, int batch, int n, int u) const { return i == 0 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)0 * hidden + u] : i == 1 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)1 * hidden + u] : i == 2 ? (char*)&g_next2[(long long)(batch + n) * ld_g_next2 + (long long)0 * hidden + u] : i == 3 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)2 * hidden + u] : i == 4 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)3 * hidden + u] : i == 5 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)4 * hidden + u] : i == 6 ? (char*)&g_next1[(long long)(batch + n) * ld_g_next1 + (long long)0 * hidden + u] : i == 7 ? (char*)&g_saved[(long long)(n) * ld_g_saved + (long long)5 * hidden + u] : (char*)&g_next0[(long long)(batch + n) * ld_g_next0 + (long long)0 * hidden + u]; }
  __device__ long long apart(int i, int batch) const { return (long long)batch * (i == 0 ? ld_g_saved * 4 : i == 1 ? ld_g_saved * 4 : i == 2 ? ld_g_next2 * 2 : i == 3 ? ld_g_saved * 4 : i == 4 ? ld_g_saved * 4 : i == 5 ? ld_g_saved * 4 : i == 6 ? ld_g_next1 * 4 : i == 7 ? ld_g_saved * 4 : ld_g_next0 * 4); }
  __device__ static void put(int i, char* to, float v) {
    if (i == 0 ? true : i == 1 ? true : i == 2 ? false : i == 3 ? true : i == 4 ? true : i == 5 ? true : i == 6 ? true : i == 7 ? true : true) narrow(*(float*)to, v);
    if (i == 0 ? false : i == 1 ? false : i == 2 ? true : i == 3 ? false : i == 4 ? false : i == 5 ? false : i == 6 ? false : i == 7 ? false : false) narrow(*(bf16*)to, v);
  }
};
#include "../fragments.cu"
