//go:build cuda

package nvidia

import (
	"errors"
	"math"

	"rnnbench/device/cuda/driver"
)

// lt is cuBLASLt. It lists the algorithms that can compute a product, and takes one for each call.
type lt struct {
	library    *library // nil: not available
	handle     uintptr
	preference uintptr
	picked     map[shape]*algorithm // fastest algorithm; nil: cuBLAS's own choice
	described  []*algorithm         // whose descriptors close destroys
}

// A shape is everything on which the choice of an algorithm depends. The alignments of the matrices
// are in bytes.
type shape struct {
	m, n, k, ldA, ldB, ldC, alignA, alignB, alignC int
	transA, transB, accumulate, tf32               bool
	operands, result                               driver.Element
}

func shapeOf(p *driver.Product) shape {
	align := func(at driver.Pointer) int { return int(min(at&-at, 256)) }
	return shape{p.M, p.N, p.K, p.LdA, p.LdB, p.LdC, align(p.A), align(p.B), align(p.C),
		p.TransA, p.TransB, p.Accumulate, p.TF32, p.Operands, p.Result}
}

// An algorithm computes products of one shape.
type algorithm struct {
	description, a, b, c uintptr
	code                 [8]uint64 // cublasLtMatmulAlgo_t
}

// A candidate is a cublasLtMatmulHeuristicResult_t.
type candidate struct {
	code   [8]uint64
	_      uint64 // bytes of workspace
	status int32
	_      [5]int32
}

// Constants of cuBLASLt.
const (
	ltTransA, ltTransB = 3, 4
	ltSpace            = 1 // preferences: bytes of workspace
	ltReduction        = 3
	ltAlignA           = 5 // B, C and D follow

	inPlace, single = 1, 2 // allowed reductions of split-K: in the output, and in the compute type
)

func loadLt(space int64) (*lt, error) {
	l, err := loadLibrary("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11")
	if err != nil {
		return nil, err
	}
	t := &lt{library: l, picked: map[shape]*algorithm{}}
	return t, errors.Join(t.do("cublasLtCreate", address(&t.handle)), t.do("cublasLtMatmulPreferenceCreate", address(&t.preference)), t.prefer(ltSpace, uint64(space)), t.prefer(ltReduction, inPlace|single))
}

func (t *lt) do(name string, args ...uintptr) error { return one(t.call(name, args...)) }

func (t *lt) call(name string, args ...uintptr) call { return call{name, args, t.library, t.code} }

func (t *lt) code(name string, code int) error { return (*blas)(nil).code(name, code) }

// prefer sets an attribute of the preference: eight bytes for ltSpace, else four.
func (t *lt) prefer(attribute uintptr, value uint64) error {
	size := uintptr(8)
	if attribute != ltSpace {
		size = 4 // the first four, as the processor is little-endian
	}
	return t.do("cublasLtMatmulPreferenceSetAttribute", t.preference, attribute, address(&value), size)
}

// picked returns the calls of p by the fastest algorithm: one that cuBLASLt lists, or cuBLAS's own
// choice. It times them at the first product of a shape. That overwrites the product's result,
// which must not hold data yet.
func (d *gpu) picked(stream int, p *driver.Product) ([]call, error) {
	if d.lt == nil {
		var err error
		if d.lt, err = loadLt(d.properties.Workspace); err != nil {
			d.lt = &lt{picked: map[shape]*algorithm{}} // only cuBLAS's own choices remain
		}
	}
	s := shapeOf(p)
	a, ok := d.lt.picked[s]
	if !ok {
		var err error
		if a, err = d.pick(s, p); err != nil {
			return nil, err
		}
		d.lt.picked[s] = a
	}
	if a == nil {
		return d.blas.product(stream, p), nil
	}
	return []call{d.multiply(stream, p, a)}, nil
}

// multiply returns the call of p by algorithm a. The library is column-major: Cᵀ = op(B)ᵀ·op(A)ᵀ.
func (d *gpu) multiply(stream int, p *driver.Product, a *algorithm) call {
	beta := &d.blas.zero
	if p.Accumulate {
		beta = &d.blas.one
	}
	return d.lt.call("cublasLtMatmul", d.lt.handle, a.description, address(&d.blas.one), uintptr(p.B), a.b, uintptr(p.A), a.a,
		address(beta), uintptr(p.C), a.c, uintptr(p.C), a.c, address(&a.code[0]), d.spaces[stream], uintptr(d.properties.Workspace), handle(&d.streams[stream]))
}

// describe creates the library's descriptors for products of shape s.
func (t *lt) describe(s shape) (*algorithm, error) {
	a := &algorithm{}
	compute := uintptr(computeSingle)
	if s.tf32 && s.operands == driver.Single {
		compute = computeTF32
	}
	layout := func(to *uintptr, e driver.Element, trans bool, rows, cols, ld int) error { // of a row-major matrix
		if trans {
			rows, cols = cols, rows
		}
		return t.do("cublasLtMatrixLayoutCreate", address(to), dataType(e), uintptr(cols), uintptr(rows), uintptr(ld))
	}
	trans := [2]int32{}
	for i, is := range []bool{s.transB, s.transA} {
		if is {
			trans[i] = 1
		}
	}
	t.described = append(t.described, a)
	return a, errors.Join(
		t.do("cublasLtMatmulDescCreate", address(&a.description), compute, typeSingle),
		t.do("cublasLtMatmulDescSetAttribute", a.description, ltTransA, address(&trans[0]), 4),
		t.do("cublasLtMatmulDescSetAttribute", a.description, ltTransB, address(&trans[1]), 4),
		layout(&a.a, s.operands, s.transA, s.m, s.k, s.ldA),
		layout(&a.b, s.operands, s.transB, s.k, s.n, s.ldB),
		layout(&a.c, s.result, false, s.m, s.n, s.ldC),
		t.prefer(ltAlignA, uint64(s.alignB)), t.prefer(ltAlignA+1, uint64(s.alignA)), t.prefer(ltAlignA+2, uint64(s.alignC)), t.prefer(ltAlignA+3, uint64(s.alignC)),
	)
}

// pick times the algorithms for p and returns the fastest; nil: cuBLAS's own choice.
func (d *gpu) pick(s shape, p *driver.Product) (*algorithm, error) {
	t := d.lt
	if t.library == nil {
		return nil, nil
	}
	a, err := t.describe(s)
	if err != nil {
		return nil, err
	}
	best, err := d.try(d.blas.product(0, p)[0])
	if err != nil {
		return nil, err
	}
	var list [16]candidate
	var n int32
	if t.do("cublasLtMatmulAlgoGetHeuristic", t.handle, a.description, a.b, a.a, a.c, a.c, t.preference, uintptr(len(list)), address(&list[0]), address(&n)) != nil {
		return nil, nil // the library lists no algorithm
	}
	var fastest *algorithm
	for _, c := range list[:n] {
		if c.status != 0 {
			continue
		}
		other := *a
		other.code = c.code
		seconds, err := d.try(d.multiply(0, p, &other))
		if err != nil {
			return nil, err
		}
		if seconds < best {
			best, fastest = seconds, &other
		}
	}
	return fastest, nil
}

// try returns the seconds that a call takes on stream 0: the minimum of four samples. Short calls
// are timed eight in a row.
func (d *gpu) try(c call) (float64, error) {
	e, err := c.entry()
	if err != nil {
		return 0, err
	}
	begin, err1 := d.NewEvent(true)
	end, err2 := d.NewEvent(true)
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	defer func() { _, _ = d.FreeEvent(begin), d.FreeEvent(end) }()
	const short = 1e-4
	best, row := math.Inf(1), 1
	for range 4 {
		if err := d.Record(begin, 0); err != nil {
			return 0, err
		}
		for range row {
			if err := c.tell(c.name, issue(&e)); err != nil {
				return 0, err
			}
		}
		if err := errors.Join(d.Record(end, 0), d.Await(end)); err != nil {
			return 0, err
		}
		seconds, err := d.Elapsed(begin, end)
		if err != nil {
			return 0, err
		}
		if best = min(best, seconds/float64(row)); best < short {
			row = 8
		}
	}
	return best, nil
}
