// V values side by side, read and written in one access where they are aligned.
template <class T, int V> struct __align__(sizeof(T) * V) pack { T v[V]; };

template <int V, class T> __device__ __forceinline__ void load(float* to, const T* from) {
  const pack<T, V> p = *reinterpret_cast<const pack<T, V>*>(from);
#pragma unroll
  for (int i = 0; i < V; i++) to[i] = widen(p.v[i]);
}

template <int V, class T> __device__ __forceinline__ void store(T* to, const float* from) {
  pack<T, V> p;
#pragma unroll
  for (int i = 0; i < V; i++) narrow(p.v[i], from[i]);
  *reinterpret_cast<pack<T, V>*>(to) = p;
}

// leading rounds v to ten bits of mantissa, as tensor cores read it.
__device__ __forceinline__ float leading(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000); }

__device__ __forceinline__ float sigmoid(float v) { return 1 / (1 + expf(-v)); }
__device__ __forceinline__ float relu(float v) { return v > 0 ? v : v == v ? 0 : v; }
__device__ __forceinline__ float softplus(float v) { return relu(v) + log1pf(expf(-fabsf(v))); }
__device__ __forceinline__ float sqrt_grad(float g, float root) { return g / (root > 0.0005f ? 2 * root : root == root ? 0.001f : root); }

// A kernel reports an error to the host by one of these in the program's status word.
enum { BAD_INDEX = 1, STUCK = 2, TOO_LARGE = 3 };

// row_of converts a value to a row of a table, or to -1 if it is no valid row.
__device__ __forceinline__ int row_of(float v, int rows) {
  if (!(v >= 0 && v < rows)) return -1;
  const int i = (int)v;
  return (float)i == v ? i : -1;
}
