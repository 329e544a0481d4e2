// CUDA's own cuda.h, with the functions that gorgonia.org/cu calls as they were
// before CUDA 13, which changed the parameters of some.
#ifndef RNNBENCH_CUDA_H
#define RNNBENCH_CUDA_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000

// The driver still has the old entry point.
#undef cuCtxCreate
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
#define cuCtxCreate cuCtxCreate_v2

// The worker does not call these.
#undef cuMemAdvise
#define cuMemAdvise rnnbench_cuMemAdvise
static inline CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice device) { return CUDA_ERROR_NOT_SUPPORTED; }

#undef cuMemPrefetchAsync
#define cuMemPrefetchAsync rnnbench_cuMemPrefetchAsync
static inline CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice device, CUstream stream) { return CUDA_ERROR_NOT_SUPPORTED; }

#undef cuGraphAddDependencies
#define cuGraphAddDependencies rnnbench_cuGraphAddDependencies
static inline CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode* from, const CUgraphNode* to, size_t n) { return CUDA_ERROR_NOT_SUPPORTED; }

#undef cuGraphGetEdges
#define cuGraphGetEdges rnnbench_cuGraphGetEdges
static inline CUresult cuGraphGetEdges(CUgraph g, CUgraphNode* from, CUgraphNode* to, size_t* n) { return CUDA_ERROR_NOT_SUPPORTED; }

#endif
#endif
