package cpu

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/rnn/schedule"
)

// Kernels implements device.Program. A kernel is a function for one operation; its
// variant is the instruction set. An operation that runs as part of another is none.
func (p *program) Kernels() []device.Kernel {
	all := make([]device.Kernel, 0, len(p.nodes))
	for i := range p.nodes {
		k := device.Kernel{Name: p.schedule.Nodes[i].Op.Name(), Variant: p.device.kernels.Level().String(), Launches: 1}
		switch w := p.nodes[i].work.(type) {
		case done:
			continue
		case *product:
			k.Config = fmt.Sprintf("%d×%d×%d, weights in %v", w.M, w.N, w.K, p.stored(p.schedule.Nodes[i].Op))
		case *fusedCell:
			k.Config = fmt.Sprintf("%d×%d units, fused", w.rows, w.cols)
		}
		all = append(all, k)
	}
	return device.Merge(all)
}

// stored is how the right factor of a product is stored.
func (p *program) stored(op schedule.Op) schedule.Precision {
	if g, ok := op.(schedule.Gemm); ok && g.B.M.Packed {
		return p.schedule.Precision
	}
	return schedule.FP32
}
