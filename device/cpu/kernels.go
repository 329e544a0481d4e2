package cpu

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// Kernels implements device.Program. A kernel is a function for one operation. Its variant is the
// instruction set of its products or, without any, of its vectors. An operation that runs as part
// of another one is not listed.
func (p *program) Kernels() []device.Kernel {
	all := make([]device.Kernel, 0, len(p.nodes))
	for i := range p.nodes {
		k := device.Kernel{Name: p.schedule.Nodes[i].Op.Name(), Variant: p.device.kernels.Level().Base().String(), Launches: 1}
		switch w := p.nodes[i].work.(type) {
		case absorbed:
			continue
		case *product:
			k.Variant = p.variant(&w.Product)
			k.Config = fmt.Sprintf("%d×%d×%d, weights in %v", w.M, w.N, w.K, p.stored(p.schedule.Nodes[i].Op))
		case *persistent:
			g := bandProduct(w.batch, w.hidden, w.hidden, p.format)
			k.Variant = p.variant(&g)
		case *persistentBackward:
			g := bandProduct(w.batch, w.hidden, w.depth, p.format)
			k.Variant = p.variant(&g)
		case *fusedCell:
			k.Config = fmt.Sprintf("%d×%d units, fused", w.rows, w.cols)
		}
		all = append(all, k)
	}
	return device.Merge(all)
}

// variant returns the instruction set that multiplies g.
func (p *program) variant(g *gemm.Product) string {
	l := p.device.kernels.Level().Base()
	if blocks, ok := gemm.Rounds(p.device.gemm, g); ok {
		l = simd.AVX512BF16
		if blocks > 0 {
			l = simd.AMX
		}
	}
	return l.String()
}

// stored returns the precision in which a product's right factor is stored.
func (p *program) stored(op schedule.Op) schedule.Precision {
	if g, ok := op.(schedule.Gemm); ok && g.B.M.Packed {
		return p.schedule.Precision
	}
	return schedule.FP32
}
