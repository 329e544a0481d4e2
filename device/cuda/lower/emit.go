package lower

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/stack"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/schedule"
)

// An emitter turns operations into commands, in order. Its state concerns products of split
// factors: which largest values are known, and which partial sums are not yet added up.
type emitter struct {
	*launch.Target
	lowering *Lowering
	at       int                  // the operation's index among all of the schedule
	now      int                  // the current node; -1: in the preparation
	known    []absmaxKnown        // factors whose largest values are known, in the order of their last use
	summed   map[int]bool         // sums of rows, by node, whose partial sums were formed along with a largest value
	added    map[int]bool         // those of summed that a product's launch has added up
	chained  map[int]gemm.Operand // right operands that an earlier product of the chain has packed, by node
	chainEnd int                  // the chain's last product, by node
	pending  []gemm.PartialSums   // partial sums to add up after that node
}

// scratch returns the address of memory that operations of a stream may write to while they run.
func (e *emitter) scratch(stream int) driver.Pointer {
	return e.Base + driver.Pointer(e.lowering.scratch[stream])
}

// Emit returns the commands of the schedule's preparation and of each node, for memory at base.
func (p *Lowering) Emit(base driver.Pointer) (prepare []launch.Command, nodes [][]launch.Command, err error) {
	b := &emitter{Target: p.target(base), lowering: p, now: -1, chainEnd: -1, summed: map[int]bool{}, added: map[int]bool{}, chained: map[int]gemm.Operand{}}
	for _, op := range p.schedule.Prepare {
		commands, err := b.operation(op, 0)
		if err != nil {
			return nil, nil, err
		}
		prepare = append(prepare, commands...)
		b.forget(op)
		b.at++
	}
	b.known = nil // a run cannot rely on the preparation, which may be long past
	nodes = make([][]launch.Command, len(p.schedule.Nodes))
	for i, n := range p.schedule.Nodes {
		b.now = i
		if nodes[i], err = b.node(i); err != nil {
			return nil, nil, err
		}
		b.forget(n.Op)
		b.at++
	}
	return prepare, nodes, nil
}

// node returns the commands of node i. A product and the cell after it may be one launch.
func (e *emitter) node(i int) ([]launch.Command, error) {
	s := e.lowering.schedule
	n := s.Nodes[i]
	if t := e.lowering.Stacks.At[i]; t != nil {
		return []launch.Command{stack.Launch(e.Target, t, uint64(e.Base)+uint64(e.lowering.stackBarriers[i]))}, nil
	}
	if e.lowering.Fused[i] || e.lowering.Inside[i] {
		return nil, nil
	}
	if i > 0 && e.lowering.Fused[i-1] {
		g := s.Nodes[i-1].Op.(schedule.Gemm)
		return []launch.Command{gemm.SkinnyCell(e.Target, g, n.Op.(schedule.Cell), e.lowering.Factors[g.B.M.ID], e.lowering.keep[i-1])}, nil
	}
	if row := e.biasOf(i); !row.Empty() {
		return e.splitProduct(n.Op.(schedule.Gemm), row, n.Stream%launch.MaxStreams), nil
	}
	if !e.biasOf(i - 1).Empty() {
		return nil, nil
	}
	if e.joinsSums(i) {
		op := n.Op.(schedule.Map)
		e.pending = append(e.pending, gemm.PartialSums{Rows: op.Out.Rows, Cols: op.Out.Cols, Parts: 1, From: e.At(op.B), To: op.Out, Add: true})
		return nil, nil
	}
	if r, ok := e.lowering.batches[i]; !ok {
		return nil, nil // launched with another node's batch
	} else if len(r.ops) > 1 {
		return e.together(r, n.Stream%launch.MaxStreams), nil
	}
	return e.operation(n.Op, n.Stream%launch.MaxStreams)
}

// operation returns the commands of op on a stream.
func (e *emitter) operation(op schedule.Op, stream int) ([]launch.Command, error) {
	switch op := op.(type) {
	case schedule.Gemm:
		return product(e, op, stream)
	case schedule.Pack:
		if n := e.lowering.Factors[op.Dst.M.ID]; n != nil {
			return []launch.Command{gemm.PackSkinny(e.Target, op, n)}, nil
		}
		switch e.lowering.Kept[op.Dst.M.ID] {
		case gemm.SplitLibrary:
			return gemm.SplitWeights(e.Target, op.Src, !op.Trans, e.At(op.Dst), largestAt(e, op.Src)), nil
		case gemm.SplitKernel:
			return gemm.PackRight(e.Target, op, largestAt(e, op.Src)), nil
		}
		if e.lowering.alias[op.Dst.M.ID] {
			return nil, nil
		}
		return []launch.Command{e.pack(op, e.lowering.weights[op.Dst.M.ID])}, nil
	case schedule.Map:
		return []launch.Command{zero(e, op)}, nil
	case schedule.MapChain:
		return []launch.Command{pointwise.MapChain(e.Target, op)}, nil
	case schedule.Vendor, schedule.VendorBackward:
		s, _ := stackOf(op)
		return []launch.Command{e.network(s, stream)}, nil
	case schedule.SumRows:
		if e.added[e.now] {
			return nil, nil
		}
		return e.sumRows(op, 0, stream), nil
	case schedule.Cell:
		return []launch.Command{pointwise.Step(e.Target, pointwise.CellName(op), op.Program(), op, op.Next[0])}, nil
	case schedule.CellBackward:
		return []launch.Command{pointwise.Step(e.Target, op.Cell.Name+"_backward", op.Cell.Backward, op, op.Next[0])}, nil
	case schedule.Gather:
		return []launch.Command{pointwise.Gather(e.Target, op)}, nil
	case schedule.Scatter:
		return []launch.Command{pointwise.Scatter(e.Target, op, notedAt(e, op.Table))}, nil
	case schedule.SoftmaxLoss:
		return []launch.Command{pointwise.SoftmaxLoss(e.Target, op)}, nil
	case schedule.CTCLoss:
		return pointwise.CTCLoss(e.Target, op)
	case schedule.Normalise:
		return []launch.Command{pointwise.Normalise(e.Target, op)}, nil
	case schedule.NormaliseBackward:
		return []launch.Command{pointwise.NormaliseBackward(e.Target, op)}, nil
	case schedule.Squares:
		return pointwise.Squares(e.Target, []schedule.Squares{op}), nil
	case schedule.Change:
		return []launch.Command{pointwise.Change(e.Target, op)}, nil
	case schedule.Update:
		return pointwise.Updates(e.Target, []schedule.Update{op}, largest(e)), nil
	case schedule.AllReduce:
		return e.sumOver(op)
	case schedule.Scan, schedule.ScanBackward:
		if e.lowering.Knobs["scanserial"] != 0 || schedule.SerialScan(op) {
			return []launch.Command{pointwise.SerialScan(e.Target, op)}, nil
		}
		return []launch.Command{scan.Launch(e.Target, e.lowering.cells, op, e.lowering.scans[stream])}, nil
	case schedule.Pause:
		e.known = nil // what one part has found, the next cannot rely on: the host program may have written in between
		return nil, nil
	case schedule.Persistent:
		return e.forwards(op)
	case schedule.PersistentBackward:
		return e.backwards(op)
	}
	return nil, fmt.Errorf("cuda: %s: %w: there is no kernel for it", op.Name(), schedule.ErrDevice)
}

// product returns the commands of a product on a stream.
func product(e *emitter, op schedule.Gemm, stream int) ([]launch.Command, error) {
	if why := e.Properties.NoProducts; why != "" {
		return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrDevice, why)
	}
	if n := e.lowering.Factors[op.B.M.ID]; n != nil {
		return []launch.Command{gemm.SkinnyProduct(e.Target, op, n)}, nil
	}
	switch e.lowering.MethodOf(op) {
	case gemm.SplitLibrary:
		return gemm.SplitProduct(e.Target, op, e.lowering.Kept[op.B.M.ID] != gemm.Library, e.scratch(stream)), nil
	case gemm.SplitKernel:
		return e.splitProduct(op, schedule.View{}, stream), nil
	}
	return []launch.Command{{Product: gemm.Product(e.Target, op)}}, nil
}
