package lower

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// A Network is one that the library has prepared: its number and sizes.
type Network struct {
	Id    int
	Sizes driver.Sizes
}

// A vendorStack is an operation that the vendor's library runs.
type vendorStack struct {
	*schedule.Stack
	backward *schedule.VendorBackward // nil: forward
	last     []schedule.View
}

// stackOf returns op as a stack, if the vendor's library runs it.
func stackOf(op schedule.Op) (vendorStack, bool) {
	switch op := op.(type) {
	case schedule.Vendor:
		return vendorStack{Stack: &op.Stack, last: op.Last}, true
	case schedule.VendorBackward:
		return vendorStack{Stack: &op.Stack, backward: &op}, true
	}
	return vendorStack{}, false
}

// A space holds the parameters of all layers, or their gradients.
type space struct{ w, r, bx, br []schedule.View }

// matrix returns the number of the matrix that identifies the space.
func (p *space) matrix() int { return p.w[0].M.ID }

// spaces are the parameters and, in a backward pass, their gradients.
func (s *vendorStack) spaces() []space {
	all := []space{{w: s.W, r: s.R, bx: s.BX, br: s.BR}}
	if b := s.backward; b != nil {
		all = append(all, space{w: b.DW, r: b.DR, bx: b.DBX, br: b.DBR})
	}
	return all
}

// views returns what the library reads and writes. All have one element type.
func (s *vendorStack) views() []schedule.View {
	var op schedule.Op = schedule.Vendor{Stack: *s.Stack, Last: s.last}
	if s.backward != nil {
		op = *s.backward
	}
	var all []schedule.View
	for _, v := range append(op.Reads(), op.Writes()...) {
		if v != s.Kept {
			all = append(all, v)
		}
	}
	return all
}

// network describes s to the library.
func (s *vendorStack) network(e driver.Element, p schedule.Precision) driver.Network {
	return driver.Network{
		Cell: s.Cell.Name, Algorithm: s.Algorithm, Both: s.Both, Element: e, TF32: p == schedule.TF32, Train: !s.Kept.Empty(),
		Input: s.X.Cols, Hidden: s.Hidden(), Layers: s.Layers(), Batch: s.Batch(), Steps: s.Steps,
		Lengths: driver.LengthsOf(s.Lengths), Padded: s.Padded(),
	}
}

// HasNetworks reports whether the vendor's library runs part of s.
func HasNetworks(s *schedule.Schedule) bool {
	for op := range s.Operations() {
		if _, ok := stackOf(op); ok {
			return true
		}
	}
	return false
}

// Networks yields the networks of s with their operations.
func Networks(s *schedule.Schedule) func(yield func(driver.Network, schedule.Op) bool) {
	return func(yield func(driver.Network, schedule.Op) bool) {
		var e []driver.Element
		for op := range s.Operations() {
			st, ok := stackOf(op)
			if !ok {
				continue
			}
			if e == nil {
				e = elementsOf(s, 0)
			}
			if !yield(st.network(e[st.X.M.ID], s.Precision), op) {
				return
			}
		}
	}
}

// An extent is part of a program's memory, in bytes.
type extent struct{ at, bytes int64 }

// placeNetworks places the parameters of networks and what they keep for a gradient. It raises each
// stream's scratch memory to what they need as a workspace.
func (l *Lowering) placeNetworks(s *schedule.Schedule, networks map[driver.Network]Network, need []int64) error {
	for stream, op := range everything(s) {
		st, ok := stackOf(op)
		if !ok {
			continue
		}
		if n := len(st.First); n > len(driver.NetworkRun{}.First) {
			return fmt.Errorf("cuda: %w: cuDNN keeps two states, and %v has %d", schedule.ErrCell, st.Cell, n)
		}
		z := networks[st.network(l.Elements[st.X.M.ID], s.Precision)].Sizes
		for _, p := range st.spaces() {
			if err := l.placeSpace(p, z); err != nil {
				return err
			}
		}
		if !st.Kept.Empty() && l.Offsets[st.Kept.M.ID] < 0 {
			l.Offsets[st.Kept.M.ID] = l.reserve(z.Kept)
		}
		need[stream] = max(need[stream], z.Workspace)
	}
	return nil
}

func (l *Lowering) placeSpace(p space, z driver.Sizes) error {
	if _, ok := l.spaces[p.matrix()]; !ok {
		l.spaces[p.matrix()] = extent{at: l.reserve(z.Weights), bytes: z.Weights}
	}
	base := l.spaces[p.matrix()].at
	for i, at := range z.Parameters {
		for _, home := range []struct {
			v  schedule.View
			at int64
		}{{p.w[i], at.W}, {p.r[i], at.R}, {p.bx[i], at.BX}, {p.br[i], at.BR}} {
			to := &l.Offsets[home.v.M.ID]
			if *to >= 0 && *to != base+home.at {
				return fmt.Errorf("cuda: %w: %s is a parameter of two networks that keep it in different places", schedule.ErrUnsupported, home.v.M.Name)
			}
			*to = base + home.at
		}
	}
	return nil
}

// network returns the command that runs s on a stream.
func (e *emitter) network(s vendorStack, stream int) launch.Command {
	r := &driver.NetworkRun{
		ID: e.lowering.networks[s.network(e.Element(s.X), e.Precision)].Id,
		X:  e.At(s.X), Y: e.At(s.Y), Weights: e.Base + driver.Pointer(e.lowering.spaces[s.spaces()[0].matrix()].at),
		Workspace: e.scratch(stream),
	}
	if !s.Kept.Empty() {
		r.Kept = e.At(s.Kept)
	}
	for i, v := range s.First {
		r.First[i] = e.At(v)
	}
	for i, v := range s.last {
		r.Last[i] = e.At(v)
	}
	if g := s.backward; g != nil {
		r.Backward, r.DY, r.DX = true, e.At(g.DY), e.At(g.DX)
		r.DWeights = e.Base + driver.Pointer(e.lowering.spaces[s.spaces()[1].matrix()].at)
		for i, v := range g.DFirst {
			r.DFirst[i] = e.At(v)
		}
	}
	return launch.Command{Network: r}
}
