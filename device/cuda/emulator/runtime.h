// Enough of CUDA C++ on one thread of the host to run kernels unchanged. The threads of a block, or
// of a whole grid if all blocks run at the same time, are fibers that take turns at barriers and
// exchanges.
//
// It declares what it needs of the host's libraries itself, since their headers take longer to
// compile than most kernels.
typedef decltype(sizeof(0)) size_t;
extern "C" {
float expf(float), expm1f(float), log1pf(float), sqrtf(float), exp2f(float), logf(float), tanhf(float), fmaxf(float, float), fmaf(float, float, float), fabsf(float), ldexpf(float, int);
double ldexp(double, int), rint(double);
void *malloc(size_t), *aligned_alloc(size_t, size_t), free(void*), *memset(void*, int, size_t), *memcpy(void*, const void*, size_t);
}
#ifndef __x86_64__
#error the emulator switches fibers on amd64 alone
#endif

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;

struct Geometry { unsigned grid[3], block[3]; unsigned long long shared; int cooperative, cluster, late; unsigned char* room; size_t bytes; };
enum { TOGETHER = 8 }; // blocks that run at the same time if one waits for another

struct Meeting { unsigned come = 0, of = 0, turn = 0; };
struct Cluster { Meeting all; unsigned char* shared; size_t stride; };
struct Block { Meeting all, some[16]; unsigned char* shared; unsigned rank; Cluster* cluster; };
struct Warp { Meeting all; unsigned slot[2][6][32]; unsigned of; };
struct Bulk { void* to; const void* from; int bytes; };
struct Copy { void* to; const void* from; int bytes, group; };
struct Fiber { void* sp; Index thread, block; Block* in; Warp* warp; unsigned lane, turn; bool done; bool apart; const unsigned* waits; unsigned seen; Bulk written[8]; int writes; Copy* copies; int coming, room, groups; };

static Fiber* current;
static void* scheduler;

extern "C" void swap_fibers(void** from, void* to);
asm(R"(
.text
swap_fibers:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
)");

static void yield() { swap_fibers(&current->sp, scheduler); }

// A lane that has waited by itself is parted from its warp. On a GPU, the lanes of a warp leave
// such a wait one by one, and go on apart until the warp or its block does something together. If
// they arrive at a named barrier apart, it counts the warp once for each part, and its other
// threads hang or go on too early. A kernel that does so fails.
static bool parted;
static void pause() {
  current->apart = true;
  yield();
}
static void rest() { pause(); }

static void leave(Meeting& m) {
  if (--m.of > 0 && m.come == m.of) m.come = 0, m.turn++;
}
static void meet(Meeting& m) {
  const unsigned turn = m.turn;
  if (++m.come == m.of) {
    m.come = 0, m.turn++;
    return;
  }
  current->waits = &m.turn, current->seen = turn; // the scheduler passes this fiber over until the turn is another
  while (m.turn == turn) yield();
  current->waits = nullptr;
}
static void __syncthreads() {
  meet(current->in->all);
  current->apart = false;
}
static void __syncwarp() {
  meet(current->warp->all);
  current->apart = false;
}
static void meet_at(int which, int threads) {
  Meeting& m = current->in->some[which];
  m.of = threads;
  meet(m);
  current->apart = false;
}
static void arrive_at(int which, int threads) {
  parted |= current->apart;
  Meeting& m = current->in->some[which];
  if (m.of = threads, ++m.come == m.of) m.come = 0, m.turn++;
}
static void __threadfence() {}

// exchange shows n values to the warp and returns what all lanes show of each. They stay until the lane exchanges again.
typedef const unsigned lanes[32];
static lanes* exchange(const unsigned* v, int n) {
  Warp& w = *current->warp;
  unsigned(*slot)[32] = w.slot[current->turn++ % 2];
  for (int i = 0; i < n; i++) slot[i][current->lane] = v[i];
  meet(w.all);
  current->apart = false;
  return slot;
}
static const unsigned* exchange(unsigned v) { return *exchange(&v, 1); }
static unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
static float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
static float __shfl_xor_sync(unsigned, float v, int mask) { return __uint_as_float(exchange(__float_as_uint(v))[current->lane ^ mask]); }
static unsigned __shfl_xor_sync(unsigned, unsigned v, int mask) { return exchange(v)[current->lane ^ mask]; }
static float __shfl_sync(unsigned, float v, int lane) { return __uint_as_float(exchange(__float_as_uint(v))[lane]); }
static float __shfl_up_sync(unsigned, float v, unsigned by) {
  const unsigned* all = exchange(__float_as_uint(v));
  return __uint_as_float(all[current->lane < by ? current->lane : current->lane - by]);
}
static unsigned __ballot_sync(unsigned, int v) {
  const unsigned* all = exchange(v != 0);
  unsigned bits = 0;
  for (unsigned l = 0; l < current->warp->of; l++) bits |= all[l] << l;
  return bits;
}
static bool __any_sync(unsigned, int v) { return __ballot_sync(0xffffffff, v); }
static bool __all_sync(unsigned, int v) { return !__any_sync(0xffffffff, !v); }
static int __popc(unsigned v) { // the compiler's own would need its library
  v -= v >> 1 & 0x55555555, v = (v & 0x33333333) + (v >> 2 & 0x33333333);
  return ((v + (v >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}
static int __ffs(unsigned v) { return __builtin_ffs(v); }
static unsigned atomicAdd(unsigned* p, unsigned v) { const unsigned old = *p; *p += v; return old; }
static unsigned atomicMax(unsigned* p, unsigned v) { const unsigned old = *p; *p = old > v ? old : v; return old; }
typedef unsigned long long word;
static word atomicAdd(word* p, word v) { const word old = *p; *p += v; return old; }
// late says that the last cluster of the grid starts only after all others have ended. Each reading of the
// clock then adds half a second, so that the others soon give up.
static bool late;
static long long clock64() { static long long now; return now += late ? 1 << 30 : 1; }
template <class T> static T min(T a, T b) { return a < b ? a : b; }
template <class T> static T max(T a, T b) { return a > b ? a : b; }

template <int> static void more_registers() {}
template <int> static void fewer_registers() {}

static void add_release(unsigned* p) { ++*p; }
static unsigned get_acquire(const unsigned* p) { return *(const volatile unsigned*)p; }
static float exp2_quick(float v) { return exp2f(v); }
static float at_most(float bound, float v) { return v > bound ? bound : v; }
static float reciprocal(float v) { return 1 / v; }
static float tangent_coarse(float v) { return __uint_as_float((__float_as_uint(tanhf(v)) + 0x1000) & 0xffffe000); }  // to ten bits, off by 2⁻¹¹
template <class T> static void prefetch(const T*) {}

struct pair_of_words { float value[2]; unsigned number[2]; };
static void put_word(unsigned* p, float value, unsigned number) { p[0] = __float_as_uint(value), p[1] = number; }
static pair_of_words get_words(const unsigned* p) { return {{__uint_as_float(p[0]), __uint_as_float(p[2])}, {p[1], p[3]}}; }

typedef unsigned long long shared_t;
static shared_t shared_address(const void* p) { return (shared_t)p; }
static void wait_previous() {}
static void begin_next() {}
static int cluster_rank() { return current->in->rank; }
static void cluster_barrier() { meet(current->in->cluster->all); }
static shared_t remote(shared_t a, int rank) { return a + (rank - (int)current->in->rank) * current->in->cluster->stride; }
struct Bar { int bytes; unsigned pending : 15, count : 15, phase : 1; };
static void bar_settle(Bar* b) {
  if (b->pending == 0 && b->bytes == 0) b->pending = b->count, b->phase ^= 1;
}
static void bar_init(shared_t bar, int count) { *(Bar*)bar = {0, (unsigned)count, (unsigned)count, 0}; }
static void bar_end(shared_t) {}
static void bar_publish() {}
static void bar_arrive(shared_t bar, int bytes) {
  Bar* b = (Bar*)bar;
  b->bytes += bytes, b->pending--;
  bar_settle(b);
}
static bool bar_try(shared_t bar, int parity) {
  const bool done = ((Bar*)bar)->phase != parity;
  current->apart = true;
  if (!done) yield();
  return done;
}
template <int N> static void push(shared_t to, const float* v, shared_t bar) {
  memcpy((void*)to, v, 4 * N);
  ((Bar*)bar)->bytes -= 4 * N;
  bar_settle((Bar*)bar);
}
template <int N> static void push(bool may, shared_t to, const float* v, shared_t bar) {
  if (may) push<N>(to, v, bar);
}
// in_sixteens fails where the copy engine would: it copies whole 16 bytes, from and to multiples of
// 16.
static void in_sixteens(const void* to, const void* from, int bytes) {
  if (((size_t)to | (size_t)from | bytes) % 16 != 0 || bytes <= 0) __builtin_trap();
}
static void copy_bulk(shared_t to, const void* from, int bytes, shared_t bar) {
  in_sixteens((void*)to, from, bytes);
  memcpy((void*)to, from, bytes);
  ((Bar*)bar)->bytes -= bytes;
  bar_settle((Bar*)bar);
}
static void read_bulk(shared_t to, const void* from, int bytes, shared_t bar) { copy_bulk(to, from, bytes, bar); }
static void read_bulk(shared_t to, const void* from, int bytes, shared_t bar, bool) { copy_bulk(to, from, bytes, bar); }
static void show_engine() {}
// The engine reads what it writes as late as it may.
static void write_bulk(void* to, shared_t from, int bytes) {
  in_sixteens(to, (const void*)from, bytes);
  if (current->writes == 8) __builtin_trap();
  current->written[current->writes++] = {to, (const void*)from, bytes};
}
static void engine_read() {
  for (; current->writes > 0; current->writes--) {
    const Bulk& b = current->written[current->writes - 1];
    memcpy(b.to, b.from, b.bytes);
  }
}
#define __grid_constant__
struct tensor_map { const char* at; long long size, sizes[3], strides[2], box[3], turned; };
// turned returns where the engine puts byte p of rows of 128 bytes, swizzled in eights of rows by
// pieces of 16 bytes.
static char* turned(char* p, bool turned) { return turned ? (char*)((size_t)p ^ (size_t)p >> 3 & 0x70) : p; }
static void tensor_load(shared_t to, const tensor_map& m, int column, int n, int time, shared_t bar) {
  // These are illegal instructions on an H200.
  if (column * m.size % 16 != 0 || column < 0 || n < 0 || time < 0 || (to - (shared_t)current->in->shared) % 128 != 0) __builtin_trap();
  char* here = (char*)to;
  for (long long t = time; t < time + m.box[2]; t++)
    for (long long b = n; b < n + m.box[1]; b++)
      for (long long c = column, piece = 16 / m.size; c < column + m.box[0]; c += piece, here += 16) {
        const long long inside = b < m.sizes[1] && t < m.sizes[2] ? max(0ll, min(piece, m.sizes[0] - c)) * m.size : 0;
        if (inside > 0) memcpy(turned(here, m.turned), m.at + c * m.size + b * m.strides[0] + t * m.strides[1], inside);
        if (inside < 16) memset(turned(here, m.turned) + inside, 0, 16 - inside);
      }
  ((Bar*)bar)->bytes -= here - (char*)to;
  bar_settle((Bar*)bar);
}
static void bar_arrive(shared_t bar) { bar_arrive(bar, 0); }
static void bar_arrive(bool may, shared_t bar, int bytes) {
  if (may) bar_arrive(bar, bytes);
}
static void bar_arrive_at(shared_t bar) { bar_arrive(bar, 0); }
template <int BLOCKS> static void copy_all(shared_t to, const void* from, int bytes, shared_t bar) {
  if (BLOCKS == 1) copy_bulk(to, from, bytes, bar);
  else
    for (int rank = 0; rank < BLOCKS; rank++) copy_bulk(remote(to, rank), from, bytes, remote(bar, rank));
}
// Copies arrive as late as they may, the latest first: copies of one thread have no order.
template <int BYTES> static void copy_async(void* to, const void* from) {
  if (BYTES == 2) {
    memcpy(to, from, 2);
    return;
  }
  Fiber& f = *current;
  if (f.coming == f.room) {
    Copy* const more = (Copy*)malloc((f.room = 2 * f.room + 8) * sizeof(Copy));
    if (f.coming > 0) memcpy(more, f.copies, f.coming * sizeof(Copy));
    free(f.copies), f.copies = more;
  }
  f.copies[f.coming++] = {to, from, BYTES, f.groups};
}
static void end_async() { current->groups++; }
static void come(int groups) {
  Fiber& f = *current;
  int come = 0;
  while (come < f.coming && f.copies[come].group < groups) come++;
  for (int i = come - 1; i >= 0; i--) memcpy(f.copies[i].to, f.copies[i].from, f.copies[i].bytes);
  for (int i = come; i < f.coming; i++) f.copies[i - come] = f.copies[i];
  f.coming -= come;
}
template <int GROUPS> static void wait_async() { come(current->groups - GROUPS); }
static void arrive_async(shared_t bar) {
  come(current->groups + 1);
  bar_arrive(bar, 0);
}
static word get_staying(const word* p) { return *(const volatile word*)p; }
static void get_staying(word& a, word& b, const word* p) { a = get_staying(p), b = get_staying(p + 1); }
static void get_words(word& a, word& b, const word* p) { get_staying(a, b, p); }
static void put_staying(word* p, word v) { *(volatile word*)p = v; }
static void put_staying(word* p, word a, word b) { put_staying(p, a), put_staying(p + 1, b); }
static void put_words(word* p, word a, word b) { put_staying(p, a, b); }
static void put_here(int* p, int v) { *(volatile int*)p = v; }
static int get_here(const int* p) { return *(const volatile int*)p; }
#define DYNAMIC_SHARED(name) unsigned char* const name = current->in->shared

struct bf16 { unsigned short bits; };
struct fp16 { unsigned short bits; };
static float widen(float v) { return v; }
static float widen(bf16 v) { return __uint_as_float((unsigned)v.bits << 16); }
static float widen(fp16 v) {
  // The exponent's bias is 15 and not 127: a product by 2^112 is exact, and right for subnormal numbers as well.
  unsigned u = __float_as_uint(__uint_as_float((unsigned)(v.bits & 0x7fff) << 13) * __uint_as_float((127 + 112) << 23));
  if ((v.bits & 0x7c00) == 0x7c00) u |= 0x7f800000; // NaN or infinity
  return __uint_as_float(u | (unsigned)(v.bits >> 15) << 31);
}
static void narrow(float& to, float v) { to = v; }
static void narrow(bf16& to, float v) {
  const unsigned u = __float_as_uint(v);
  to.bits = v != v ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static void narrow(fp16& to, float v) {
  const unsigned sign = __float_as_uint(v) >> 16 & 0x8000;
  const float a = fabsf(v);
  if (v != v) to.bits = 0x7fff;
  else if (a >= 65520) to.bits = sign | 0x7c00;
  else if (a < ldexpf(1, -14)) to.bits = sign | (unsigned)rint(ldexp(a, 24));
  else {
    unsigned u = __float_as_uint(a);
    u += 0xfff + (u >> 13 & 1);
    to.bits = sign | ((u >> 13) - (112 << 10));
  }
}
static unsigned halves_of(float v) {
  const float high = (v + 6144) - 6144;
  fp16 a, b;
  narrow(a, high), narrow(b, (v - high) * 2048);
  return a.bits | b.bits << 16;
}

static void split_pair(unsigned& high, unsigned& low, float x, float y) {
  fp16 h[2], l[2];
  narrow(h[0], x), narrow(h[1], y);
  narrow(l[0], x - widen(h[0])), narrow(l[1], y - widen(h[1]));
  high = h[0].bits | h[1].bits << 16, low = l[0].bits | l[1].bits << 16;
}

struct alignas(16) quad { unsigned v[4]; };
static quad get_quad(const unsigned* p) { return *(const quad*)p; }
static void put_one(unsigned* p, unsigned v) { *(volatile unsigned*)p = v; }
template <class T> static void settle(const T*, int) {}
static unsigned fresh(unsigned v) { return v; }
static unsigned bits_of(float v) { return __float_as_uint(v); }
static unsigned bits_of(bf16 v) { return v.bits; }
static unsigned bits_of(fp16 v) { return v.bits; }
// A product of a lane has two rows and two columns at a time: c[0] and c[1] of the first row, c[2] and c[3] of the
// second. Each sum is taken in the order of k.
#define QUICK __attribute__((always_inline)) inline
typedef unsigned words __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
static QUICK floats elements(float, words v, int) { return (floats)(v & 0xffffe000); }
static QUICK floats elements(bf16, words v, int k) { return (floats)(k ? v & 0xffff0000 : v << 16); }
static QUICK floats elements(fp16, words v, int k) { // as widen
  if (k) v >>= 16;
  const float scale = 0x1p112f;
  const words u = (words)((floats)((v & 0x7fff) << 13) * scale), infinite = (words)((v & 0x7c00) == 0x7c00);
  return (floats)(u | infinite & 0x7f800000 | (v & 0x8000) << 16);
}
static QUICK words by_row(unsigned first, unsigned second) { return words{first, first, second, second}; }
static QUICK words by_column(unsigned first, unsigned second) { return words{first, second, first, second}; }
#define FAST __attribute__((optimize("O2")))
template <class W> FAST static void mma_part(W w, float* c, const unsigned* a, unsigned b0, unsigned b1) {
  const unsigned mine[] = {a[0], a[1], a[2], a[3], b0, b1};
  lanes* const all = exchange(mine, 6);
  const int row = current->lane / 4 * 4, column = current->lane % 4 * 8;
  floats sum;
  memcpy(&sum, c, sizeof sum);
  for (int half = 0; half < 2; half++)
    for (int lane = 0; lane < 4; lane++) {
      const words x = by_row(all[half * 2][row + lane], all[half * 2 + 1][row + lane]);
      const words y = by_column(all[4 + half][column + lane], all[4 + half][column + 4 + lane]);
      for (int k = 0; k < 4 / (int)sizeof(W); k++) sum += elements(w, x, k) * elements(w, y, k);
    }
  memcpy(c, &sum, sizeof sum);
}
struct matrix { shared_t at; int apart; };
static matrix matrix_at(shared_t at, int apart) { return {at, apart}; }
static void mma_begin() {}
static void mma_end() {}
static void mma_commit() {}
template <int> static void mma_wait() {}
static void settled(const float*) {}
template <int N, class W> FAST static void mma_wide(W w, float* c, const unsigned* a, matrix m, int bytes, bool add) {
  lanes* const all = exchange(a, 4);
  const int row = current->lane / 4 * 4, four = current->lane % 4;
  floats left[16]; // of both rows of this lane
  for (int k = 0; k < 16; k++) left[k] = elements(w, by_row(all[k / 8 * 2][row + k / 2 % 4], all[k / 8 * 2 + 1][row + k / 2 % 4]), k % 2);
  for (int i = 0; i < N / 2; i += 4) {
    const shared_t column = m.at + bytes + (i / 4 * 8 + 2 * four) * 16;
    floats sum = {};
    if (add) memcpy(&sum, c + i, sizeof sum);
    for (int k = 0; k < 16; k += 2) {
      const unsigned* const two = (const unsigned*)(column + k / 8 * m.apart + k % 8 / 2 * 4);
      const words y = by_column(two[0], two[4]);
      sum += left[k] * elements(w, y, 0);
      sum += left[k + 1] * elements(w, y, 1);
    }
    memcpy(c + i, &sum, sizeof sum);
  }
}
template <int N, class W> static void mma_wide(W w, float* c, matrix a, int before, matrix m, int bytes) {
  unsigned left[4]; // the fragments that would be in registers
  const shared_t row = a.at + before + (threadIdx.x / 32 % 4) * 256 + current->lane / 4 * 16 + current->lane % 4 * 4;
  for (int i = 0; i < 4; i++) left[i] = *(const unsigned*)(row + i / 2 * a.apart + i % 2 * 128);
  mma_wide<N>(w, c, left, m, bytes, true);
}

static void (*body)(void**);
static void** arguments;

static void fiber_main() {
  body(arguments);
  current->done = true;
  leave(current->warp->all);
  leave(current->in->all);
  leave(current->in->cluster->all);
  for (;;) pause();
}

// launch_alone runs the threads one after the other, if none waits for another.
static void launch_alone(Geometry& g, void** args, void (*kernel)(void**)) {
  blockDim = {g.block[0], g.block[1], g.block[2]}, gridDim = {g.grid[0], g.grid[1], g.grid[2]};
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
        for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
          for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) kernel(args);
}

// room returns so much memory. The host lends it to one launch after the other, since the kernel of the host's
// system clears what is fresh, page by page.
static unsigned char* room(Geometry& g, size_t bytes) {
  if (g.bytes < bytes) free(g.room), g.room = (unsigned char*)aligned_alloc(4096, g.bytes = (bytes + 4095) / 4096 * 4096);
  return g.room;
}

// launch runs the grid with fibers: some blocks at a time, or all at once.
static void launch_some(Geometry& g, void** args, void (*kernel)(void**), unsigned most) {
  const unsigned threads = g.block[0] * g.block[1] * g.block[2], blocks = g.grid[0] * g.grid[1] * g.grid[2];
  const unsigned warps = (threads + 31) / 32;
  unsigned together = g.cooperative ? blocks : g.cluster > 1 ? g.cluster : min(most, blocks);
  const size_t stack = (32 << 10) + 192; // no power of two: the tops of all stacks would share a few places of the cache
  body = kernel, arguments = args;
  blockDim = {g.block[0], g.block[1], g.block[2]}, gridDim = {g.grid[0], g.grid[1], g.grid[2]};
  const size_t stride = (g.shared + 511) / 256 * 256;
  // Each part is filled below, block by block.
  size_t from[7] = {}, bytes[] = {stride * together, stack * together * threads, together * threads * sizeof(Fiber), together * sizeof(Block), together * warps * sizeof(Warp), together * sizeof(Cluster)};
  for (int i = 0; i < 6; i++) from[i + 1] = from[i] + (bytes[i] + 255) / 256 * 256;
  unsigned char* const whole = room(g, from[6]);
  unsigned char* const shared = whole;
  unsigned char* const stacks = whole + from[1];
  Fiber* const fibers = (Fiber*)(whole + from[2]);
  Block* const in = (Block*)(whole + from[3]);
  Warp* const warp = (Warp*)(whole + from[4]);
  Cluster* const clusters = (Cluster*)(whole + from[5]);
  for (unsigned first = 0; first < blocks; first += together) {
    together = min(together, blocks - first);
    for (unsigned b = 0; b < together; b++) {
      in[b] = Block();
      in[b].all.of = threads;
      in[b].shared = shared + b * stride, in[b].rank = b % g.cluster, in[b].cluster = &clusters[b / g.cluster];
      if (in[b].rank == 0) clusters[b / g.cluster] = {{0, threads * g.cluster, 0}, in[b].shared, stride};
      memset(in[b].shared, 0xff, g.shared);
      for (unsigned w = 0; w < warps; w++) {
        warp[b * warps + w] = Warp();
        warp[b * warps + w].all.of = warp[b * warps + w].of = min(32u, threads - 32 * w);
      }
      for (unsigned t = 0; t < threads; t++) {
        Fiber& f = fibers[b * threads + t];
        const unsigned id = first + b;
        f = Fiber();
        f.thread = {t % g.block[0], t / g.block[0] % g.block[1], t / g.block[0] / g.block[1]};
        f.block = {id % g.grid[0], id / g.grid[0] % g.grid[1], id / g.grid[0] / g.grid[1]};
        f.in = &in[b], f.warp = &warp[b * warps + t / 32], f.lane = t % 32;
        void** top = (void**)(stacks + stack * (b * threads + t + 1)) - 2; // 8 below a multiple of 16 once fiber_main is reached
        *top = (void*)fiber_main;
        f.sp = top - 6;
      }
    }
    const unsigned all = together * threads;
    late = g.late && together > (unsigned)g.cluster;
    const unsigned punctual = late ? all - g.cluster * threads : all;
    for (unsigned left = all, turn = 0; left > 0; turn += 97) { // a different one first each time
      const bool held = late && left > all - punctual;
      left = 0;
      for (unsigned n = 0, i = turn % all; n < all; n++, i = i + 1 < all ? i + 1 : 0)
        if (!fibers[i].done) {
          if (held && i >= punctual || fibers[i].waits && *fibers[i].waits == fibers[i].seen) {
            left++;
            continue;
          }
          current = &fibers[i], threadIdx = current->thread, blockIdx = current->block;
          swap_fibers(&scheduler, current->sp);
          left += !current->done;
          if (current->done) free(current->copies);
        }
    }
  }
}
static void launch(Geometry& g, void** args, void (*kernel)(void**)) { launch_some(g, args, kernel, 1); }
static void launch_together(Geometry& g, void** args, void (*kernel)(void**)) { launch_some(g, args, kernel, TOGETHER); }
