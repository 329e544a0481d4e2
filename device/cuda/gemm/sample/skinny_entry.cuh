// What Go puts behind skinny.cu for the kernel of sample/skinny.cuh.
struct Out {
  enum { GATES = 3, READS = 10 };
  float* c;
  int ldc, hidden, keep;
  const float* g_x;
  int ld_g_x;
  const float* g_bx;
  int ld_g_bx;
  const float* g_br;
  int ld_g_br;
  const float* g_prev0;
  int ld_g_prev0;
  float* g_next0;
  int ld_g_next0;
  __device__ void read(int r, int u, float* v) const {
    v[0] = widen(g_x[(long long)r * ld_g_x + 0 * hidden + u]);
    v[1] = widen(g_bx[(long long)r * ld_g_bx + 0 * hidden + u]);
    v[2] = widen(g_br[(long long)r * ld_g_br + 0 * hidden + u]);
    v[3] = widen(g_x[(long long)r * ld_g_x + 1 * hidden + u]);
    v[4] = widen(g_bx[(long long)r * ld_g_bx + 1 * hidden + u]);
    v[5] = widen(g_br[(long long)r * ld_g_br + 1 * hidden + u]);
    v[6] = widen(g_br[(long long)r * ld_g_br + 2 * hidden + u]);
    v[7] = widen(g_x[(long long)r * ld_g_x + 2 * hidden + u]);
    v[8] = widen(g_bx[(long long)r * ld_g_bx + 2 * hidden + u]);
    v[9] = widen(g_prev0[(long long)r * ld_g_prev0 + 0 * hidden + u]);
  }
  __device__ void write(int r, int u, const float* v, const float* z) const {
    float x0 = v[0];
    float bx0 = v[1];
    float br0 = v[2];
    float x1 = v[3];
    float bx1 = v[4];
    float br1 = v[5];
    float br2 = v[6];
    float x2 = v[7];
    float bx2 = v[8];
    float prev0 = v[9];
    float r0 = z[0];
    if (keep) narrow(c[(long long)r * ldc + 0 * hidden + u], z[0]);
    float r1 = z[1];
    if (keep) narrow(c[(long long)r * ldc + 1 * hidden + u], z[1]);
    float r2 = z[2];
    if (keep) narrow(c[(long long)r * ldc + 2 * hidden + u], z[2]);
    float t0 = x0 + bx0;
    float t1 = r0 + br0;
    t1 = t0 + t1;
    t1 = sigmoid(t1);
    t0 = x1 + bx1;
    float t2 = r1 + br1;
    t2 = t0 + t2;
    t2 = sigmoid(t2);
    t0 = r2 + br2;
    float t3 = x2 + bx2;
    t0 = t1 * t0;
    t0 = t3 + t0;
    t0 = tanhf(t0);
    t3 = 1 - t2;
    t0 = t3 * t0;
    t2 = t2 * prev0;
    float next0 = t0 + t2;
    narrow(g_next0[(long long)r * ld_g_next0 + 0 * hidden + u], next0);
  }
};
extern "C" __global__ void __launch_bounds__(256) narrow_gru(const W* a, int lda, int rows, const quad* weights, int length, int hidden, int chunks, float* c, int ldc, int keep, const float* g_x, int ld_g_x, const float* g_bx, int ld_g_bx, const float* g_br, int ld_g_br, const float* g_prev0, int ld_g_prev0, float* g_next0, int ld_g_next0) {
  Out out;
  out.c = c, out.ldc = ldc, out.hidden = hidden, out.keep = keep; out.g_x = g_x, out.ld_g_x = ld_g_x; out.g_bx = g_bx, out.ld_g_bx = ld_g_bx; out.g_br = g_br, out.ld_g_br = ld_g_br; out.g_prev0 = g_prev0, out.ld_g_prev0 = ld_g_prev0; out.g_next0 = g_next0, out.ld_g_next0 = ld_g_next0;
  narrow_product(out, a, lda, rows, weights, length, hidden, chunks);
}
