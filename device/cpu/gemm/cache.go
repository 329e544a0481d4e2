package gemm

import "github.com/klauspost/cpuid/v2"

// DetectL2 returns the bytes of L2 cache of one core of this machine; 0: unknown.
func DetectL2() int { return max(0, cpuid.CPU.Cache.L2) }
