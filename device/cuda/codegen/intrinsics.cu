// What kernels need of the hardware, in inline assembly where C++ has no word for it. Toolkit
// headers are not on every machine.

struct bf16 { unsigned short bits; };
struct fp16 { unsigned short bits; };

__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ float widen(bf16 v) { return __uint_as_float((unsigned)v.bits << 16); }
__device__ __forceinline__ float widen(fp16 v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}
__device__ __forceinline__ void narrow(float& to, float v) { to = v; }
__device__ __forceinline__ void narrow(bf16& to, float v) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(v));
}
__device__ __forceinline__ void narrow(fp16& to, float v) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(v));
}

// halves_of splits a value within ±1 into two fp16 numbers that are off by 2⁻²⁴ at most, in few
// operations. The high half, rounded to multiples of 2⁻¹¹, is in the lower 16 bits of the word; the
// low half times 2048 is above it. See half_of in recurrence.cu.
__device__ __forceinline__ unsigned halves_of(float v) {
  const float high = (v + 6144) - 6144;
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"((v - high) * 2048), "f"(high));
  return both;
}

// split_pair splits two values into fp16 halves: high has the nearest ones and low those of the
// remainders. In each word, x is below y.
__device__ __forceinline__ void split_pair(unsigned& high, unsigned& low, float x, float y) {
  float of_x, of_y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
  asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %2;\n\tcvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, h;\n\t}" : "=f"(of_x), "=f"(of_y) : "r"(high));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y - of_y), "f"(x - of_x));
}

// add_release adds 1 to a counter after all earlier accesses. get_acquire reads a counter before
// all later ones. pause is called between two polls; rest is a pause that leaves the multiprocessor
// to others.
__device__ __forceinline__ void add_release(unsigned* p) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}
__device__ __forceinline__ unsigned get_acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void pause() {}
__device__ __forceinline__ void rest() { asm volatile("nanosleep.u32 50;" ::: "memory"); }

// Words are 64 bits that another block may be writing; each is read whole. The words of scans
// should stay in the L2 cache whatever else passes through it. A poll of words that have left the
// cache takes as long as an access to memory, even if it reads what the previous run wrote.
typedef unsigned long long word;
__device__ __forceinline__ void get_words(word& a, word& b, const word* p) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}
__device__ __forceinline__ void put_words(word* p, word a, word b) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned long long stay() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ word get_staying(const word* p) {
  word v;
  asm volatile("ld.relaxed.gpu.global.L2::cache_hint.u64 %0, [%1], %2;" : "=l"(v) : "l"(p), "l"(stay()) : "memory");
  return v;
}
__device__ __forceinline__ void get_staying(word& a, word& b, const word* p) {
  asm volatile("ld.relaxed.gpu.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;" : "=l"(a), "=l"(b) : "l"(p), "l"(stay()) : "memory");
}
__device__ __forceinline__ void put_staying(word* p, word v) {
  asm volatile("st.relaxed.gpu.global.L2::cache_hint.u64 [%0], %1, %2;" ::"l"(p), "l"(v), "l"(stay()) : "memory");
}
__device__ __forceinline__ void put_staying(word* p, word a, word b) {
  asm volatile("st.relaxed.gpu.global.L2::cache_hint.v2.u64 [%0], {%1, %2}, %3;" ::"l"(p), "l"(a), "l"(b), "l"(stay()) : "memory");
}
#else
__device__ __forceinline__ word get_staying(const word* p) {
  word v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void get_staying(word& a, word& b, const word* p) { get_words(a, b, p); }
__device__ __forceinline__ void put_staying(word* p, word v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ void put_staying(word* p, word a, word b) { put_words(p, a, b); }
#endif

// copy_async starts a copy of 4, 8 or 16 bytes to shared memory; it copies 2 at once. end_async
// ends a group of copies. wait_async waits for all groups of this thread except the last GROUPS.
template <int BYTES> __device__ __forceinline__ void copy_async(void* to, const void* from) {
  if (BYTES == 2) {
    *(unsigned short*)to = *(const unsigned short*)from;
    return;
  }
  unsigned at;
  asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(at) : "l"(to));
  if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  if (BYTES == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
  if (BYTES == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void end_async() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS> __device__ __forceinline__ void wait_async() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }

// meet_at waits at named barrier which of the block's sixteen, for so many threads in whole warps.
// arrive_at arrives there without waiting.
__device__ __forceinline__ void meet_at(int which, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(threads) : "memory"); }
__device__ __forceinline__ void arrive_at(int which, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(which), "r"(threads) : "memory"); }

// put_here writes a number to shared memory after all earlier accesses; get_here reads one before
// all later ones.
__device__ __forceinline__ void put_here(int* p, int v) { asm volatile("st.release.cta.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ int get_here(const int* p) {
  int v;
  asm volatile("ld.acquire.cta.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

__device__ __forceinline__ float exp2_quick(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
// at_most returns the smaller of v and a bound, and NaN if v is NaN.
__device__ __forceinline__ float at_most(float bound, float v) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(v), "f"(bound));
  return r;
#else
  return v > bound ? bound : v;
#endif
}
__device__ __forceinline__ float reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
__device__ __forceinline__ float tangent_coarse(float v) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
template <class T> __device__ __forceinline__ void prefetch(const T* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// Pairs of a value and a number in one 64-bit word, written and read whole.
struct pair_of_words { float value[2]; unsigned number[2]; };
__device__ __forceinline__ void put_word(unsigned* p, float value, unsigned number) {
  const unsigned long long word = (unsigned long long)number << 32 | __float_as_uint(value);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}
__device__ __forceinline__ pair_of_words get_words(const unsigned* p) {
  unsigned long long a, b;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
  return {{__uint_as_float((unsigned)a), __uint_as_float((unsigned)b)}, {(unsigned)(a >> 32), (unsigned)(b >> 32)}};
}

// Four words. get_quad reads four that others may be writing singly or in pairs; each write is seen
// whole. put_one writes one word.
struct __align__(16) quad { unsigned v[4]; };
__device__ __forceinline__ quad get_quad(const unsigned* p) {
  word a, b;
  get_words(a, b, (const word*)p);
  return {{(unsigned)a, (unsigned)(a >> 32), (unsigned)b, (unsigned)(b >> 32)}};
}
__device__ __forceinline__ void put_one(unsigned* p, unsigned v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Addresses of shared memory: this block's or, after remote, those of another block of the cluster.
typedef unsigned shared_t;
__device__ __forceinline__ shared_t shared_address(const void* p) { return (shared_t)__cvta_generic_to_shared(p); }

#if __CUDA_ARCH__ >= 900
#define HOPPER(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER(...) asm volatile("trap;") // never launched there
#endif

// A kernel that may begin before earlier work has ended calls wait_previous before it reads what
// others have written, or writes what they may read. begin_next lets the next kernel begin.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void wait_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void begin_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
#else
__device__ __forceinline__ void wait_previous() {}
__device__ __forceinline__ void begin_next() {}
#endif

// more_registers and fewer_registers set the registers of each thread of a warpgroup from here on.
// All four warps call them. 0: no change.
template <int N> __device__ __forceinline__ void more_registers() {
  if constexpr (N > 0) HOPPER("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void fewer_registers() {
  if constexpr (N > 0) HOPPER("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

__device__ __forceinline__ int cluster_rank() {
  int r = 0;
  HOPPER("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void cluster_barrier() {
  HOPPER("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ shared_t remote(shared_t a, int rank) {
  shared_t r = 0;
  HOPPER("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(rank));
  return r;
}

// A barrier in shared memory (mbarrier, 8 bytes) ends a phase when count threads have arrived and
// all announced bytes have come. bar_publish shows it to the cluster and the copy engine. bar_end
// makes it plain memory again. bar_try reports whether the phase of that parity has ended. With may
// false, bar_arrive does nothing, without a branch. arrive_async arrives once all copies that this
// thread has started have come.
__device__ __forceinline__ void bar_init(shared_t bar, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_end(shared_t bar) { asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(bar) : "memory"); }
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void bar_publish() { HOPPER("fence.mbarrier_init.release.cluster;" ::: "memory"); }
#else
__device__ __forceinline__ void bar_publish() {}
#endif
__device__ __forceinline__ void bar_arrive(shared_t bar, int bytes) {
  HOPPER("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_arrive(bool may, shared_t bar, int bytes) {
  HOPPER("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%1], %2;\n\t}" ::"r"((unsigned)may), "r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_arrive(shared_t bar) {
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void arrive_async(shared_t bar) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory"); }
__device__ __forceinline__ bool bar_try(shared_t bar, int parity) {
  int done = 0;
#if __CUDA_ARCH__ >= 900
#define TRY "try_wait.parity.shared::cta"
#else
#define TRY "test_wait.parity.shared"
#endif
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier." TRY ".b64 p, [%1], %2;\n\tselp.s32 %0, 1, 0, p;\n\t}"
               : "=r"(done) : "r"(bar), "r"(parity) : "memory");
#undef TRY
  return done;
}

// read_bulk starts a bulk copy of bytes, a multiple of 16, from memory to shared memory; bar counts
// them. Earlier kernels have written them. copy_bulk does the same for data that this kernel has
// written, once this thread knows of the write.
__device__ __forceinline__ void read_bulk(shared_t to, const void* from, int bytes, shared_t bar) {
  HOPPER("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
// read_bulk with keep: whether the L2 cache keeps the data as long as it can, or evicts it first.
__device__ __forceinline__ void read_bulk(shared_t to, const void* from, int bytes, shared_t bar, bool keep) {
#define READ(priority) HOPPER("{\n\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::" priority ".b64 policy, 1.0;\n\t" \
  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], policy;\n\t}" ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory")
  if (keep) READ("evict_last");
  else READ("evict_first");
#undef READ
}
__device__ __forceinline__ void copy_bulk(shared_t to, const void* from, int bytes, shared_t bar) {
  HOPPER("fence.proxy.async.global;" ::: "memory");
  read_bulk(to, from, bytes, bar);
}

// write_bulk starts a bulk copy of bytes, a multiple of 16, from shared memory to memory. The
// threads that wrote them have called show_engine, and this thread knows of that. engine_read waits
// until the copies of this thread have read shared memory.
__device__ __forceinline__ void show_engine() { HOPPER("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void write_bulk(void* to, shared_t from, int bytes) {
  HOPPER("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\tcp.async.bulk.commit_group;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void engine_read() { HOPPER("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// tensor_load starts a copy of a box of a tensor, columns of sequences at steps, to shared memory;
// bar counts the bytes. Elements beyond the tensor's ends read as zeros. No coordinate is negative.
struct __align__(64) tensor_map { word opaque[16]; };
__device__ __forceinline__ void tensor_load(shared_t to, const tensor_map& map, int column, int n, int time, shared_t bar) {
  HOPPER("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
         ::"r"(to), "l"(&map), "r"(column), "r"(n), "r"(time), "r"(bar) : "memory");
}

// copy_all copies to the same place of all blocks of the cluster, of BLOCKS blocks; their barriers
// count the bytes. bar_arrive_at arrives at a barrier of any block of the cluster. It does not
// order this thread's writes.
template <int BLOCKS> __device__ __forceinline__ void copy_all(shared_t to, const void* from, int bytes, shared_t bar) {
  if constexpr (BLOCKS == 1) copy_bulk(to, from, bytes, bar);
  else
    HOPPER("fence.proxy.async.global;\n\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
           ::"r"(to), "l"(from), "r"(bytes), "r"(bar), "h"((unsigned short)((1 << BLOCKS) - 1)) : "memory");
}
__device__ __forceinline__ void bar_arrive_at(shared_t bar) { HOPPER("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory"); }

// push sends N values to another block, whose barrier counts their bytes. With may false it does
// nothing, without a branch.
template <int N> __device__ __forceinline__ void push(bool may, shared_t to, const float* v, shared_t bar) {
#define BITS(i) "r"(__float_as_uint(v[i]))
#define SEND(type, values) "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t@p st.async.shared::cluster.mbarrier::complete_tx::bytes." type " [%1], " values ", [%2];\n\t}" ::"r"((unsigned)may), "r"(to), "r"(bar)
  if constexpr (N == 1)
    HOPPER(SEND("u32", "%3"), BITS(0) : "memory");
  else if constexpr (N == 2)
    HOPPER(SEND("v2.u32", "{%3, %4}"), BITS(0), BITS(1) : "memory");
  else if constexpr (N == 4)
    HOPPER(SEND("v4.u32", "{%3, %4, %5, %6}"), BITS(0), BITS(1), BITS(2), BITS(3) : "memory");
  else {
    push<N / 2>(may, to, v, bar);
    push<N / 2>(may, to + N * 2, v + N / 2, bar);
  }
#undef SEND
#undef BITS
}
template <int N> __device__ __forceinline__ void push(shared_t to, const float* v, shared_t bar) { push<N>(true, to, v, bar); }

__device__ __forceinline__ unsigned bits_of(float v) { return __float_as_uint(v); }
__device__ __forceinline__ unsigned bits_of(bf16 v) { return v.bits; }
__device__ __forceinline__ unsigned bits_of(fp16 v) { return v.bits; }

// settle makes the compiler wait here for loads that are on the way to n registers. In a loop it
// could not know that they have come. It would then wait at each step for all else on the same
// scoreboard. (It sleeps a moment in the unlikely case that the values xor to one number.)
template <class T> __device__ __forceinline__ void settle(const T* v, int n) {
  unsigned all = 0;
#pragma unroll
  for (int i = 0; i < n; i++) all ^= *(const unsigned*)(v + i);
  asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.u32 p, %0, 1234567891;\n\t@p nanosleep.u32 1;\n\t}" ::"r"(all));
}

// fresh returns v, but the compiler no longer knows its value.
__device__ __forceinline__ unsigned fresh(unsigned v) {
  asm volatile("" : "+r"(v));
  return v;
}

// mma_part adds the product of 16×16 by 16×8 values of 16 bits, two to a word, to 16×8 sums, four
// in each lane. With float it multiplies 16×8 by 8×8 values with ten bits of mantissa.
#define MMA(shape, word)                                                                                                      \
  asm("mma.sync.aligned." shape ".row.col.f32." word "." word ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
__device__ __forceinline__ void mma_part(bf16, float* c, const unsigned* a, unsigned b0, unsigned b1) { MMA("m16n8k16", "bf16"); }
__device__ __forceinline__ void mma_part(fp16, float* c, const unsigned* a, unsigned b0, unsigned b1) { MMA("m16n8k16", "f16"); }
__device__ __forceinline__ void mma_part(float, float* c, const unsigned* a, unsigned b0, unsigned b1) { MMA("m16n8k8", "tf32"); }
#undef MMA

// A matrix of 16 columns lies in shared memory. Of each row, eight values are 16 bytes side by
// side; the other eight lie a fixed distance (apart) away. mma_wide multiplies by a warpgroup,
// between mma_begin and mma_end, which waits for the products. Each warp has 16 rows of 16 columns
// of a, as fragments of mma_part. The right factor is N rows of the matrix, bytes behind m; N is a
// multiple of 16 up to 256. Sums are fragments of 16×8, side by side; add: to the present ones. a
// may also be a matrix of 64 rows in shared memory, before bytes behind it; then products are
// always added. mma_commit ends a batch of products. mma_wait waits until all but BATCHES batches
// are done.
struct matrix { unsigned low, high; };
__device__ __forceinline__ matrix matrix_at(shared_t at, int apart) { return {(unsigned)(apart >> 4) << 16 | (at & 0x3ffff) >> 4, 8}; }
__device__ __forceinline__ void mma_begin() { HOPPER("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mma_end() { HOPPER("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory"); }
__device__ __forceinline__ void mma_commit() { HOPPER("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int BATCHES> __device__ __forceinline__ void mma_wait() { HOPPER("wgmma.wait_group.sync.aligned %0;" ::"n"(BATCHES) : "memory"); }
#define SUMS(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define WIDE(n, word, p0, p1, p2, p3, p4, p5) \
  HOPPER("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" p5 ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n "k16.f32." word "." word " {" LIST_##n "}, {%" p0 ", %" p1 ", %" p2 ", %" p3 "}, %" p4 ", p, 1, 1, 0;\n\t}" \
         : SUMS_##n : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(at_matrix(m, bytes)), "r"((int)add))
#define WIDE_SHARED(n, word, p0, p1, ...) \
  HOPPER("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." word "." word " {" LIST_##n "}, %" p0 ", %" p1 ", 1, 1, 1, 0, 0;" \
         : SUMS_##n : "l"(at_matrix(a, before)), "l"(at_matrix(m, bytes)))
#define LIST_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SUMS_16 SUMS(0)
#define LIST_32 LIST_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_32 SUMS_16, SUMS(8)
#define LIST_48 LIST_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SUMS_48 SUMS_32, SUMS(16)
#define LIST_64 LIST_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_64 SUMS_48, SUMS(24)
#define LIST_80 LIST_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SUMS_80 SUMS_64, SUMS(32)
#define LIST_96 LIST_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS_96 SUMS_80, SUMS(40)
#define LIST_112 LIST_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SUMS_112 SUMS_96, SUMS(48)
#define LIST_128 LIST_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_128 SUMS_112, SUMS(56)
#define LIST_144 LIST_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SUMS_144 SUMS_128, SUMS(64)
#define LIST_160 LIST_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SUMS_160 SUMS_144, SUMS(72)
#define LIST_176 LIST_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define SUMS_176 SUMS_160, SUMS(80)
#define LIST_192 LIST_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define SUMS_192 SUMS_176, SUMS(88)
#define LIST_208 LIST_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define SUMS_208 SUMS_192, SUMS(96)
#define LIST_224 LIST_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define SUMS_224 SUMS_208, SUMS(104)
#define LIST_240 LIST_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define SUMS_240 SUMS_224, SUMS(112)
#define LIST_256 LIST_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_256 SUMS_240, SUMS(120)
// By the width N: the operand numbers that follow the sums.
#define EACH_WIDTH(DO, word) \
  if constexpr (N == 16) DO(16, word, "8", "9", "10", "11", "12", "13"); \
  else if constexpr (N == 32) DO(32, word, "16", "17", "18", "19", "20", "21"); \
  else if constexpr (N == 48) DO(48, word, "24", "25", "26", "27", "28", "29"); \
  else if constexpr (N == 64) DO(64, word, "32", "33", "34", "35", "36", "37"); \
  else if constexpr (N == 80) DO(80, word, "40", "41", "42", "43", "44", "45"); \
  else if constexpr (N == 96) DO(96, word, "48", "49", "50", "51", "52", "53"); \
  else if constexpr (N == 112) DO(112, word, "56", "57", "58", "59", "60", "61"); \
  else if constexpr (N == 128) DO(128, word, "64", "65", "66", "67", "68", "69"); \
  else if constexpr (N == 144) DO(144, word, "72", "73", "74", "75", "76", "77"); \
  else if constexpr (N == 160) DO(160, word, "80", "81", "82", "83", "84", "85"); \
  else if constexpr (N == 176) DO(176, word, "88", "89", "90", "91", "92", "93"); \
  else if constexpr (N == 192) DO(192, word, "96", "97", "98", "99", "100", "101"); \
  else if constexpr (N == 208) DO(208, word, "104", "105", "106", "107", "108", "109"); \
  else if constexpr (N == 224) DO(224, word, "112", "113", "114", "115", "116", "117"); \
  else if constexpr (N == 240) DO(240, word, "120", "121", "122", "123", "124", "125"); \
  else if constexpr (N == 256) DO(256, word, "128", "129", "130", "131", "132", "133");
__device__ __forceinline__ unsigned long long at_matrix(matrix m, int bytes) { return (unsigned long long)m.high << 32 | (m.low + bytes / 16); }
template <int N> __device__ __forceinline__ void mma_wide(bf16, float* c, const unsigned* a, matrix m, int bytes, bool add) { EACH_WIDTH(WIDE, "bf16") }
template <int N> __device__ __forceinline__ void mma_wide(fp16, float* c, const unsigned* a, matrix m, int bytes, bool add) { EACH_WIDTH(WIDE, "f16") }
template <int N> __device__ __forceinline__ void mma_wide(bf16, float* c, matrix a, int before, matrix m, int bytes) { EACH_WIDTH(WIDE_SHARED, "bf16") }
template <int N> __device__ __forceinline__ void mma_wide(fp16, float* c, matrix a, int before, matrix m, int bytes) { EACH_WIDTH(WIDE_SHARED, "f16") }
#undef EACH_WIDTH
#undef WIDE
#undef WIDE_SHARED
// settled keeps the compiler from reading sums before mma_end.
__device__ __forceinline__ void settled(float* c) { asm volatile("" : SUMS(0), SUMS(8), SUMS(16), SUMS(24), SUMS(32), SUMS(40), SUMS(48), SUMS(56)); }
#undef SUMS
