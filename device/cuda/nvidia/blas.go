//go:build cuda

package nvidia

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
)

// blas is cuBLAS with a handle per stream.
type blas struct {
	library *library
	version string
	handles []uintptr

	one, zero float32 // factors alpha and beta, which products read by address
}

func loadBLAS() (*blas, error) {
	l, err := loadLibrary("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
	if err != nil {
		return nil, fmt.Errorf("cuBLAS is unavailable: %w", err)
	}
	var v [3]int32
	for i := range v {
		if code := l.call("cublasGetProperty", uintptr(i), address(&v[i])); code != 0 {
			return nil, fmt.Errorf("cuBLAS is unavailable: %s returns %d", l.path, code)
		}
	}
	return &blas{library: l, version: fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]), one: 1}, nil
}

func (b *blas) do(name string, args ...uintptr) error {
	return b.code(name, b.library.call(name, args...))
}

// code turns the status that a cuBLAS function returned into an error; 0: nil.
func (b *blas) code(name string, code int) error {
	switch code {
	case 0:
		return nil
	case 3:
		return fmt.Errorf("%w: %s", device.ErrMemory, name)
	case 13: // its own kernel failed, or an earlier one
		return fmt.Errorf("%w: %s: execution failed", device.ErrFault, name)
	default:
		return fmt.Errorf("%s returns %d", name, code)
	}
}

// add creates the handle of the next stream. Each handle has its own workspace of bytes, which
// graphs require.
func (b *blas) add(stream, workspace uintptr, bytes int64) error {
	var h uintptr
	if err := b.do("cublasCreate_v2", address(&h)); err != nil {
		return err
	}
	if err := b.do("cublasSetStream_v2", h, stream); err != nil {
		return err
	}
	if err := b.do("cublasSetWorkspace_v2", h, workspace, uintptr(bytes)); err != nil {
		return err
	}
	b.handles = append(b.handles, h)
	return nil
}

// Constants of cuBLAS.
const (
	typeSingle, typeHalf, typeBrain = 0, 2, 14
	computeSingle, computeTF32      = 68, 77
	algorithmDefault                = -1
	pointsToHost, pointsToDevice    = 0, 1 // pointer modes: where a product reads its factors
)

func dataType(e driver.Element) uintptr {
	switch e {
	case driver.Brain:
		return typeBrain
	case driver.Half:
		return typeHalf
	}
	return typeSingle
}

// product returns the calls of a product. cuBLAS is column-major, so it computes Cᵀ = op(B)ᵀ·op(A)ᵀ.
func (b *blas) product(stream int, p *driver.Product) []call {
	trans := func(t bool) uintptr {
		if t {
			return 1
		}
		return 0
	}
	compute := uintptr(computeSingle)
	if p.TF32 && p.Operands == driver.Single {
		compute = computeTF32
	}
	alpha, beta := address(&b.one), address(&b.zero)
	if p.Accumulate {
		beta = alpha
	}
	if p.Scale != 0 {
		alpha, beta = uintptr(p.Scale), uintptr(p.Scale)+4
	}
	minusOne := int32(algorithmDefault)
	gemm := b.call("cublasGemmEx", b.handles[stream], trans(p.TransB), trans(p.TransA),
		uintptr(p.N), uintptr(p.M), uintptr(p.K), alpha,
		uintptr(p.B), dataType(p.Operands), uintptr(p.LdB),
		uintptr(p.A), dataType(p.Operands), uintptr(p.LdA), beta,
		uintptr(p.C), dataType(p.Result), uintptr(p.LdC), compute, uintptr(uint32(minusOne)))
	if p.Scale == 0 {
		return []call{gemm}
	}
	mode := func(m uintptr) call { return b.call("cublasSetPointerMode_v2", b.handles[stream], m) }
	return []call{mode(pointsToDevice), gemm, mode(pointsToHost)}
}

// reset makes all handles read factors from the host again. It is needed after a sequence failed
// between the calls that switch the pointer mode.
func (b *blas) reset() {
	for _, h := range b.handles {
		_ = b.do("cublasSetPointerMode_v2", h, pointsToHost) // the earlier error says more
	}
}

func (b *blas) call(name string, args ...uintptr) call { return call{name, args, b.library, b.code} }
