package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A layout says where matrices lie in the memory that Compile allocates: the offset of each, and
// the total, in floats.
type layout struct {
	offset []int
	total  int
}

// format returns how packed matrices are stored. Only these have fewer bits, so a schedule without
// packed weights is declined in fp16, bf16 and int8. Arithmetic is in single precision, unless the
// kernels multiply BF16 (see simd.Products.Rounds) or integers.
func format(s *schedule.Schedule) (simd.Format, error) {
	var f simd.Format
	switch s.Precision {
	case schedule.FP32:
		return simd.F32, nil
	case schedule.FP16:
		f = simd.F16
	case schedule.BF16:
		f = simd.BF16
	case schedule.INT8:
		f = simd.I8
	default:
		return 0, fmt.Errorf("cpu: %w: the CPU does not support precision %v", schedule.ErrPrecision, s.Precision)
	}
	if !slices.ContainsFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Packed }) {
		return 0, fmt.Errorf("cpu: %w: %v stores packed weights in %d bits, but this schedule packs none", schedule.ErrPrecision, s.Precision, 8*f.Bytes())
	}
	if f == simd.I8 {
		return f, fitsI8(s)
	}
	return f, nil
}

// mostRowsI8 is the most rows of a product of 8-bit integers. Its kernels multiply one row at a time,
// so they gain where reading weights limits products.
const mostRowsI8 = 64

// fitsI8 declines what no kernels of 8-bit integers can run, or none gains by.
func fitsI8(s *schedule.Schedule) error {
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			switch m, _, k := op.Sizes(); {
			case !op.B.M.Packed:
			case op.TransA || k > simd.MostI8:
				return fmt.Errorf("cpu: %w: int8 multiplies rows of at most %d values, which are not transposed", schedule.ErrPrecision, simd.MostI8)
			case m > mostRowsI8:
				return fmt.Errorf("cpu: %w: int8 is for calls and short sequences, with products of at most %d rows, but one has %d: use fp32 or bf16, or a smaller inputbatch", schedule.ErrPrecision, mostRowsI8, m)
			}
		case schedule.Persistent:
			return fmt.Errorf("cpu: %w: int8 rounds states before each product, but this layer runs all steps in one operation: use cudnnstyle", schedule.ErrPrecision)
		}
	}
	return nil
}

// line is the size of a cache line, and of a vector, in floats.
const line = 16

// floats returns the size of m in memory, in floats.
func (pl *planner) floats(m *schedule.Matrix, f simd.Format) int {
	if m.Packed {
		return pl.gemm.PackedLen(f, m.Rows, m.Cols)
	}
	return m.Elements()
}

func (pl *planner) layout(s *schedule.Schedule, f simd.Format) layout {
	var l layout
	for _, m := range s.Matrices {
		l.offset = append(l.offset, l.total)
		n := pl.floats(m, f)
		l.total += (n + line - 1) / line * line
		l.total += line // rows of neighbouring matrices should not use the same cache sets
	}
	return l
}

// Memory implements device.Device.
func (d *Device) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	d = d.limited(k)
	f, err := format(s)
	if err == nil {
		err = d.declined(s, f, k)
	}
	if err != nil {
		return 0, err
	}
	return 4*(int64(d.layout(s, f).total)+int64(d.workers)*int64(d.needs(s, f, k).floats()+chained(s))) + bound(s), nil
}

// bound returns the bytes of the operations that bind makes for s. Many small steps take more
// memory than their matrices.
func bound(s *schedule.Schedule) int64 {
	const (
		each   = int64(unsafe.Sizeof(node{}) + 4 + 4) // with its place in a queue
		one    = int64(unsafe.Sizeof(pointwise{}) + unsafe.Sizeof(mapped{}))
		vector = int64(unsafe.Sizeof(matrix{}))
	)
	vectors := map[*cell.Instr]int64{} // of programs, by their first instruction
	fused := func(p cell.Program) int64 {
		n, ok := vectors[&p[0]]
		if !ok {
			n = int64(vectorsOf(p))
			vectors[&p[0]] = n
		}
		return int64(unsafe.Sizeof(fusedCell{})) + n*vector
	}
	sum := each * int64(len(s.Nodes))
	for _, n := range s.Nodes {
		sum += int64(len(n.Wait)) * int64(unsafe.Sizeof(turn{}))
	}
	var maps recent
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			sum += int64(unsafe.Sizeof(product{}))
		case schedule.Map:
			if _, ok := maps.find(op); !ok {
				maps.add(op, nil)
				sum += one
			}
		case schedule.MapChain:
			sum += one + int64(len(op.Steps)-1)*int64(unsafe.Sizeof(mapped{}))
		case schedule.SumRows:
			sum += int64(unsafe.Sizeof(sumRows{}))
		case schedule.Cell:
			sum += fused(op.Program())
		case schedule.CellBackward:
			sum += fused(op.Cell.Backward)
		}
	}
	return sum
}
