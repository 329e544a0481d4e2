//go:build amd64 && linux && !noasm

package amx

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Hardware returns the processor's own unit, or nil if this process may use none.
func Hardware() *Unit { return hardware() }

var hardware = sync.OnceValue(func() *Unit {
	if !supported() || !permitted() {
		return nil
	}
	return &Unit{run: assembly(), peak: func(n int) { peak(n, full) }}
})

// supported reports whether the processor has tiles of BF16 and the system saves their state.
func supported() bool {
	const (
		osxsave = 1 << 27                    // ecx of leaf 1
		avx512  = 1 << 16                    // ebx of leaf 7
		bf16    = 1 << 22                    // edx of leaf 7
		tiles   = 1 << 24                    // edx of leaf 7
		saved   = 1<<1 | 1<<2 | 7<<5 | 3<<17 // XCR0: SSE, AVX, AVX-512, tile configuration and data
	)
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return false
	}
	_, _, ecx, _ := cpuid(1, 0)
	_, ebx, _, edx := cpuid(7, 0)
	return ecx&osxsave != 0 && ebx&avx512 != 0 && edx&bf16 != 0 && edx&tiles != 0 && xgetbv()&saved == saved
}

// permitted requests permission to use tiles, which the system grants to the whole process.
func permitted() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18
	)
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}

//go:noescape
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

//go:noescape
func xgetbv() uint64
