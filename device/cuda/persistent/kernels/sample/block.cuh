// What Go puts ahead of block.cu for one kernel. TestSamples writes it with -update, of:
// rnn-relu 20 batch 3 steps 1 train fp16 samples=8 stepwise=false h200
#define CONFIGURED
#include "../../../codegen/intrinsics.cu"
#include "../../../codegen/common.cu"
struct Config { static constexpr int SPREAD = 0, SAMPLES = 8, BAND = 8, EXACT = 0, ORDERED = 1, CLOCKS = 0; };
#include "../block.cuh"
#include "../recurrence.cu"
typedef fp16 W;
struct Cell : Quick {
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const float* g_br;
  int ld_g_br;
  fp16* g_next0;
  int ld_g_next0;
  const fp16* g_prev0;
  int ld_g_prev0;
  const W* weights0;
  enum { hidden = 20, GATES = 1, SLOTS = 1, STATES = 1, THROUGH = 0, FREE = 0, CONSTANTS = 0, SAVED = 0 };
  __device__ const W* weights(int g) const { return weights0; }
  __device__ static bool owns(int g) { return g == 0 ? true : false; }
  typedef float Input;
  __device__ static long long at(int g) { return (long long)g * hidden; }
  __device__ const Input* input(int g, int n, int u) const { return g_x + (long long)n * ld_g_x + at(g) + u; }
  __device__ long long stride(int batch) const { return (long long)batch * ld_g_x; }
  __device__ static constexpr bool flag(int g) { return false; }
  __device__ const float* kept(int t, int batch, int n) const { return nullptr; }
  __device__ long long kept_stride(int batch) const { return 0; }
  __device__ float value(const Input* step, int g, int t, int batch, int n) const { return widen(step[at(g)]); }
  __device__ static int free(int i) { return 0; }
  __device__ float bias(int g, int u) const { return g == 0 ? 0 + widen(g_bx[(long long)(0) * ld_g_bx + (long long)0 * hidden + u]) + widen(g_br[(long long)(0) * ld_g_br + (long long)0 * hidden + u]) : 0; }
  __device__ void constants(int u, float* k) const { }
  __device__ void before(int n, int u, float* state) const {
    state[0] = widen(g_prev0[(long long)(n) * ld_g_prev0 + (long long)0 * hidden + u]);
  }
  __device__ static float early(int g, float z) { return relu(z); }
  __device__ static void rest(const float* gate, const float* input, const float* k, float* state, float* saved) {
    const float r0 = gate[0];
    float next0 = r0;
    state[0] = next0;
  }
  enum { RESULTS = 1 };
  __device__ static float result(int i, const float* state, const float* saved) { return state[0]; }
  __device__ char* place(int i, int batch, int n, int u) const { return (char*)&g_next0[(long long)(batch + n) * ld_g_next0 + (long long)0 * hidden + u]; }
  __device__ long long apart(int i, int batch) const { return (long long)batch * (ld_g_next0 * 2); }
  __device__ static void put(int i, char* to, float v) {
    if (true) narrow(*(fp16*)to, v);
  }
};
#include "../fragments.cu"
