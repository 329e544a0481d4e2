package cuda

import (
	"errors"
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// A readied network.
type readied struct {
	id    int
	sizes driver.Sizes
}

// A stack is an operation of the vendor's library.
type stack struct {
	*schedule.Stack
	backward *schedule.VendorBackward // nil: forward
	last     []schedule.View
}

// stackOf is op as a stack, if it is one.
func stackOf(op schedule.Op) (stack, bool) {
	switch op := op.(type) {
	case schedule.Vendor:
		return stack{Stack: &op.Stack, last: op.Last}, true
	case schedule.VendorBackward:
		return stack{Stack: &op.Stack, backward: &op}, true
	}
	return stack{}, false
}

// A space holds the parameters of all layers, or their gradients.
type space struct{ w, r, bx, br []schedule.View }

// matrix is the matrix that stands for the space.
func (p *space) matrix() int { return p.w[0].M.ID }

// spaces are the parameters and, in a backward pass, their gradients.
func (s *stack) spaces() []space {
	all := []space{{w: s.W, r: s.R, bx: s.BX, br: s.BR}}
	if b := s.backward; b != nil {
		all = append(all, space{w: b.DW, r: b.DR, bx: b.DBX, br: b.DBR})
	}
	return all
}

// views are all that the library reads and writes, which have one type.
func (s *stack) views() []schedule.View {
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

// network is what s is to the library.
func (s *stack) network(e driver.Element, p schedule.Precision) driver.Network {
	return driver.Network{
		Cell: s.Cell.Name, Algorithm: s.Algorithm, Element: e, TF32: p == schedule.TF32, Train: !s.Kept.Empty(),
		Input: s.X.Cols, Hidden: s.Hidden(), Layers: s.Layers(), Batch: s.Batch(), Steps: s.Steps,
	}
}

// ready has the library ready the networks of s. Those of before are ready.
func (d *Device) ready(s *schedule.Schedule) error {
	for n, op := range networks(s) {
		if why := d.properties.NoNetworks; why != "" {
			return fmt.Errorf("cuda: %s: %w: %s", op.Name(), schedule.ErrLibrary, why)
		}
		if _, ok := d.networks[n]; ok {
			continue
		}
		id, sizes, err := d.driver.NewNetwork(n)
		if err != nil {
			return fmt.Errorf("cuda: %s: %w", op.Name(), err)
		}
		d.networks[n] = readied{id: id, sizes: sizes}
	}
	return nil
}

// beginNetworks begins to ready the networks of s that are new, and reports
// whether there are any, old or new.
func (d *Device) beginNetworks(s *schedule.Schedule) (any bool) {
	for n := range networks(s) {
		any = true
		if _, ok := d.networks[n]; !ok && d.properties.NoNetworks == "" {
			d.driver.BeginNetwork(n)
		}
	}
	return any
}

// networks yields those of s with their operations.
func networks(s *schedule.Schedule) func(yield func(driver.Network, schedule.Op) bool) {
	return func(yield func(driver.Network, schedule.Op) bool) {
		var e []driver.Element
		for op := range s.Operations() {
			st, ok := stackOf(op)
			if !ok {
				continue
			}
			if e == nil {
				e = elements(s)
			}
			if !yield(st.network(e[st.X.M.ID], s.Precision), op) {
				return
			}
		}
	}
}

// An extent is part of a program's memory, in bytes.
type extent struct{ at, bytes int64 }

// house gives the parameters of networks, and what they keep, their places in the
// program's memory, and adds to what each stream needs what they do.
func (l *layout) house(s *schedule.Schedule, networks map[driver.Network]readied, need []int64) error {
	for stream, op := range everything(s) {
		st, ok := stackOf(op)
		if !ok {
			continue
		}
		z := networks[st.network(l.Elements[st.X.M.ID], s.Precision)].sizes
		for _, p := range st.spaces() {
			if err := l.houseSpace(p, z); err != nil {
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

func (l *layout) houseSpace(p space, z driver.Sizes) error {
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

// network is the call of the library for s on a stream.
func (b *binder) network(s stack, stream int) launch.Command {
	r := &driver.NetworkRun{
		ID: b.networks[s.network(b.Element(s.X), b.Precision)].id,
		X:  b.At(s.X), Y: b.At(s.Y), Weights: b.Base + driver.Pointer(b.layout.spaces[s.spaces()[0].matrix()].at),
		Workspace: b.scratch(stream),
	}
	if !s.Kept.Empty() {
		r.Kept = b.At(s.Kept)
	}
	for i, v := range s.First {
		r.First[i] = b.At(v)
	}
	for i, v := range s.last {
		r.Last[i] = b.At(v)
	}
	if g := s.backward; g != nil {
		r.Backward, r.DY, r.DX = true, b.At(g.DY), b.At(g.DX)
		r.DWeights = b.Base + driver.Pointer(b.layout.spaces[s.spaces()[1].matrix()].at)
		for i, v := range g.DFirst {
			r.DFirst[i] = b.At(v)
		}
	}
	return launch.Command{Network: r}
}

// try runs p once where the library runs part of it, which says only then what
// it cannot do, and readies more of itself than it may while a graph is captured.
func (p *program) try() error {
	for op := range p.schedule.Operations() {
		if _, ok := stackOf(op); ok {
			return errors.Join(p.issue(&p.run), p.settle(), p.clear())
		}
	}
	return nil
}
