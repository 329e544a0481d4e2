package tuner_test

import (
	"math"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A library is a device that runs stacks of rnn-relu as the vendor's library does in 16 bits. It stores inputs, weights,
// states and gradients in so many bits, and adds in fp32. Only the states of the last layer can be read.
type library struct {
	device.Device
	bits int // of the significand, the leading one included

	// open reports whether a gradient passes a unit; nil: where its stored state is above 0.
	open func(at unitAt) bool

	spoil map[string]func(values []float32) // changes matrices that are read, by name
}

// A unitAt is one unit at a step of a sequence.
type unitAt struct {
	layer, row, unit int
	input, stored    float64 // of ReLU: its input before storing, and its stored output
}

// runs reports whether the library runs s; else the device does.
func (d *library) runs(s *schedule.Schedule) bool {
	for op := range s.Operations() {
		if _, ok := op.(schedule.Vendor); ok {
			return true
		}
	}
	return false
}

func (d *library) Knobs(s *schedule.Schedule) []knob.Knob {
	if d.runs(s) {
		return nil
	}
	return d.Device.Knobs(s)
}

func (d *library) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	if d.runs(s) {
		return 1 << 20, nil
	}
	return d.Device.Memory(s, k)
}

func (d *library) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	if !d.runs(s) {
		return d.Device.Compile(s, k)
	}
	p := &libraryProgram{of: d, schedule: s, values: map[*schedule.Matrix][]float32{}}
	for _, m := range s.Matrices {
		p.values[m] = make([]float32, m.Elements())
	}
	return p, nil
}

type libraryProgram struct {
	of       *library
	schedule *schedule.Schedule
	values   map[*schedule.Matrix][]float32
	layers   [][]float64 // stored states of each layer, with the initial ones in front
	sums     [][]float64 // inputs of ReLU
}

func (p *libraryProgram) Write(m *schedule.Matrix, src []float32) error {
	copy(p.values[m], src)
	return nil
}

func (p *libraryProgram) Read(m *schedule.Matrix, dst []float32) error {
	copy(dst, p.values[m])
	if spoil := p.of.spoil[m.Name]; spoil != nil {
		spoil(dst)
	}
	return nil
}

func (p *libraryProgram) Prepare() error           { return nil }
func (p *libraryProgram) Kernels() []device.Kernel { return nil }
func (p *libraryProgram) Close() error             { return nil }

func (p *libraryProgram) Run(int) (device.Sample, error) {
	for op := range p.schedule.Operations() {
		switch op := op.(type) {
		case schedule.Vendor:
			p.forward(&op)
		case schedule.VendorBackward:
			p.backward(&op)
		}
	}
	return device.Sample{Wall: 1000}, nil
}

// store rounds v to the library's bits.
func (p *libraryProgram) store(v float64) float64 {
	fraction, exponent := math.Frexp(v)
	return math.Ldexp(math.RoundToEven(math.Ldexp(fraction, p.of.bits)), exponent-p.of.bits)
}

// load returns the values of a view's rows as the library stores them.
func (p *libraryProgram) load(v schedule.View) []float64 {
	out := make([]float64, v.Rows*v.Cols)
	for i := range out {
		out[i] = p.store(float64(p.values[v.M][v.Row*v.Cols+i]))
	}
	return out
}

func (p *libraryProgram) save(v schedule.View, values []float64) {
	for i, x := range values {
		p.values[v.M][v.Row*v.Cols+i] = float32(p.store(x))
	}
}

func (p *libraryProgram) forward(op *schedule.Vendor) {
	b, h, in, width := op.Batch(), op.Hidden(), p.load(op.X), op.X.Cols
	p.layers, p.sums = nil, nil
	for l := range op.W {
		w, r, bx, br := p.load(op.W[l]), p.load(op.R[l]), p.load(op.BX[l]), p.load(op.BR[l])
		states := append(p.load(op.First[0].Band(l*b, b)), make([]float64, op.X.Rows*h)...)
		sums := make([]float64, op.X.Rows*h)
		for row := range op.X.Rows {
			for u := range h {
				sum := float32(bx[u] + br[u])
				for k, v := range in[row*width : (row+1)*width] {
					sum += float32(v * w[u*width+k])
				}
				for k, v := range states[row*h : (row+1)*h] {
					sum += float32(v * r[u*h+k])
				}
				sums[row*h+u] = float64(sum)
				states[(row+b)*h+u] = p.store(max(0, float64(sum)))
			}
		}
		p.layers, p.sums = append(p.layers, states), append(p.sums, sums)
		p.save(op.Last[0].Band(l*b, b), states[op.X.Rows*h:])
		in, width = states[b*h:], h
	}
	p.save(op.Y, in)
}

func (p *libraryProgram) backward(op *schedule.VendorBackward) {
	b, h, rows, above := op.Batch(), op.Hidden(), op.X.Rows, p.load(op.DY)
	for l := len(op.W) - 1; l >= 0; l-- {
		in, width := p.load(op.X), op.X.Cols
		if l > 0 {
			in, width = p.layers[l-1][b*h:], h
		}
		w, r, states := p.load(op.W[l]), p.load(op.R[l]), p.layers[l]
		d, below, carry := make([]float64, rows*h), make([]float64, rows*width), make([]float64, (rows+b)*h)
		dw, dr, db := make([]float64, h*width), make([]float64, h*h), make([]float64, h)
		for row := rows - 1; row >= 0; row-- {
			for u := range h {
				at := unitAt{layer: l, row: row, unit: u, input: p.sums[l][row*h+u], stored: states[(row+b)*h+u]}
				open := at.stored > 0
				if p.of.open != nil {
					open = p.of.open(at)
				}
				if !open {
					continue
				}
				g := p.store(above[row*h+u] + p.store(carry[(row+b)*h+u]))
				d[row*h+u] = g
				db[u] += g
				for k := range width {
					dw[u*width+k] += g * in[row*width+k]
					below[row*width+k] += g * w[u*width+k]
				}
				for k := range h {
					dr[u*h+k] += g * states[row*h+k]
					carry[row*h+k] += g * r[u*h+k]
				}
			}
		}
		p.save(op.DFirst[0].Band(l*b, b), carry[:b*h])
		p.save(op.DW[l], dw)
		p.save(op.DR[l], dr)
		p.save(op.DBX[l], db)
		p.save(op.DBR[l], db)
		for i, v := range below {
			below[i] = p.store(v)
		}
		above = below
	}
	p.save(op.DX, above)
}
