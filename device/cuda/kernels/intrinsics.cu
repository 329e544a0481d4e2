// What kernels need of the machine, in inline assembly where C++ has no word
// for it: toolkit headers are not on every machine.

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

// add_release adds 1 to a counter after everything before it, get_acquire reads
// a counter before everything after it, and pause is called between two looks.
__device__ __forceinline__ void add_release(unsigned* p) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}
__device__ __forceinline__ unsigned get_acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void pause() {}

#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
