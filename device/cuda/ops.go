package cuda

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A binder turns operations into steps over the program's memory.
type binder struct {
	*persistent.Chooser
	layout     *layout
	persistent int                             // such operations so far
	order      map[int]persistent.WeightLayout // of packed weights, by matrix
	alias      map[int]bool                    // packed weights that are where their source is
	tails      []tailed                        // of factors, the latest used last
	summed     map[int]bool                    // sums of rows, by node, whose parts have been formed by who looked for the largest value
	added      map[int]bool                    // of these: whose parts have been added up with a product's
	chained    map[int]gemm.Operand            // products that another has made the right pieces of, by node
	chainEnd   int                             // the node with the last of them
	pending    []gemm.PartialSums              // to be added up behind that
	runs       map[int]run                     // by the node that each begins with
	now        int                             // the node that is bound; -1: none is
	schedule   *schedule.Schedule
	touched    [][]int // per matrix, the nodes that do; nil: not listed yet
	networks   map[driver.Network]readied
}

// newBinder lays s out, once its networks are ready, and declines settings of knobs that
// nothing of it goes by.
func newBinder(s *schedule.Schedule, k knob.Params, p driver.Properties, networks map[driver.Network]readied) (*binder, error) {
	l, err := newLayout(s, k, p, networks)
	if err != nil {
		return nil, err
	}
	b := &binder{
		Chooser: persistent.NewChooser(launch.NewTarget(&l.Memory, s.Precision, k, p), sides(s)), layout: &l, networks: networks,
	}
	b.arrange(s)
	return b, b.declined(s)
}

// scratch is memory that an operation of a stream may write to while it runs.
func (b *binder) scratch(stream int) driver.Pointer {
	return b.Base + driver.Pointer(b.layout.scratch[stream])
}

// bound is what the preparation of s takes, and each node.
func (b *binder) bound(s *schedule.Schedule) (prepare []launch.Command, nodes [][]launch.Command, err error) {
	b.tails, b.summed, b.added, b.schedule, b.now, b.runs = nil, map[int]bool{}, map[int]bool{}, s, -1, b.runsOf(s)
	b.chained, b.chainEnd, b.pending = map[int]gemm.Operand{}, -1, nil
	for _, op := range s.Prepare {
		steps, err := b.steps(op, 0)
		if err != nil {
			return nil, nil, err
		}
		prepare = append(prepare, steps...)
		b.forget(op)
	}
	b.tails = nil // of the run before
	nodes = make([][]launch.Command, len(s.Nodes))
	for i, n := range s.Nodes {
		b.now = i
		if nodes[i], err = b.node(s, i); err != nil {
			return nil, nil, err
		}
		b.forget(n.Op)
	}
	return prepare, nodes, nil
}

// node is what the operation at place i of the schedule takes on its stream; a
// product and the cell behind it may be one launch.
func (b *binder) node(s *schedule.Schedule, i int) ([]launch.Command, error) {
	n := s.Nodes[i]
	if t := b.layout.Stacks.At[i]; t != nil {
		return []launch.Command{persistent.LaunchStack(b.Target, t)}, nil
	}
	if b.layout.Fused[i] || b.layout.Inside[i] {
		return nil, nil
	}
	if i > 0 && b.layout.Fused[i-1] {
		g := s.Nodes[i-1].Op.(schedule.Gemm)
		return []launch.Command{gemm.SkinnyCell(b.Target, g, n.Op.(schedule.Cell), b.layout.Factors[g.B.M.ID], !b.overwritten(s, i-1))}, nil
	}
	if row := b.biased(s, i); !row.Empty() {
		return b.wideProduct(n.Op.(schedule.Gemm), row, n.Stream%launch.MaxStreams), nil
	}
	if !b.biased(s, i-1).Empty() {
		return nil, nil
	}
	if b.joins(i) {
		op := n.Op.(schedule.Map)
		b.pending = append(b.pending, gemm.PartialSums{Rows: op.Out.Rows, Cols: op.Out.Cols, Parts: 1, From: b.At(op.B), To: op.Out, Add: true})
		return nil, nil
	}
	if r, ok := b.runs[i]; !ok {
		return nil, nil // part of one before
	} else if len(r.ops) > 1 {
		return b.together(r), nil
	}
	return b.steps(n.Op, n.Stream%launch.MaxStreams)
}

// steps is what op takes on a stream.
func (b *binder) steps(op schedule.Op, stream int) ([]launch.Command, error) {
	switch op := op.(type) {
	case schedule.Gemm:
		if why := b.Properties.NoProducts; why != "" {
			return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrDevice, why)
		}
		if n := b.layout.Factors[op.B.M.ID]; n != nil {
			return []launch.Command{gemm.SkinnyProduct(b.Target, op, n)}, nil
		}
		switch b.layout.MethodOf(op) {
		case gemm.SplitLibrary:
			return gemm.SplitProduct(b.Target, op, b.layout.Kept[op.B.M.ID] != gemm.Library, b.scratch(stream)), nil
		case gemm.SplitKernel:
			return b.wideProduct(op, schedule.View{}, stream), nil
		}
		return []launch.Command{{Product: gemm.Product(b.Target, op)}}, nil
	case schedule.Pack:
		if n := b.layout.Factors[op.Dst.M.ID]; n != nil {
			return []launch.Command{gemm.PackSkinny(b.Target, op, n)}, nil
		}
		switch b.layout.Kept[op.Dst.M.ID] {
		case gemm.SplitLibrary:
			return gemm.SplitFactor(b.Target, op.Src, !op.Trans, b.At(op.Dst), 0, false), nil
		case gemm.SplitKernel:
			return gemm.PackRight(b.Target, op), nil
		}
		if b.alias[op.Dst.M.ID] {
			return nil, nil
		}
		return []launch.Command{b.pack(op, b.order[op.Dst.M.ID])}, nil
	case schedule.Map:
		return []launch.Command{pointwise.Map(b.Target, op)}, nil
	case schedule.Maps:
		return []launch.Command{pointwise.Maps(b.Target, op)}, nil
	case schedule.Vendor, schedule.VendorBackward:
		s, _ := stackOf(op)
		return []launch.Command{b.network(s, stream)}, nil
	case schedule.SumRows:
		if b.added[b.now] {
			return nil, nil
		}
		if b.summed[b.now] {
			return []launch.Command{pointwise.SumOfParts(b.Target, op, b.sums(stream))}, nil
		}
		return pointwise.SumRows(b.Target, op, b.scratch(stream)), nil
	case schedule.Cell:
		return []launch.Command{pointwise.Cell(b.Target, pointwise.CellName(op), op.Program(), op.Vector, op.Next[0])}, nil
	case schedule.CellBackward:
		return []launch.Command{pointwise.Cell(b.Target, op.Cell.Name+"_backward", op.Cell.Backward, op.Vector, op.Next[0])}, nil
	case schedule.Gather:
		return []launch.Command{pointwise.Gather(b.Target, op)}, nil
	case schedule.Scatter:
		return []launch.Command{pointwise.Scatter(b.Target, op)}, nil
	case schedule.SoftmaxLoss:
		return []launch.Command{pointwise.SoftmaxLoss(b.Target, op)}, nil
	case schedule.Scan, schedule.ScanBackward:
		return []launch.Command{scan.Launch(b.Target, b.layout.cells, op, b.layout.scans[stream])}, nil
	case schedule.Persistent:
		return b.forwards(op)
	case schedule.PersistentBackward:
		return b.backwards(op)
	}
	return nil, fmt.Errorf("cuda: %s: %w: there is no kernel for it", op.Name(), schedule.ErrDevice)
}
