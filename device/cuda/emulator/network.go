package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A network stands for one that the vendor's library has prepared.
type network struct {
	driver.Network
	cell  *cell.Cell
	sizes driver.Sizes
}

// BeginNetwork implements driver.Networks.
func (d *Driver) BeginNetwork(driver.Network) {}

// NewNetwork implements driver.Networks. Like the vendor's library, it puts the weights of all
// layers before all biases, and leaves gaps.
func (d *Driver) NewNetwork(n driver.Network) (int, driver.Sizes, error) {
	if n.Both && n.Algorithm == 2 {
		return 0, driver.Sizes{}, fmt.Errorf("%w: the library runs both ways by other algorithms only", schedule.ErrLibrary)
	}
	if n.Lengths != "" && n.Algorithm == 2 {
		return 0, driver.Sizes{}, fmt.Errorf("%w: the library runs lengths by other algorithms only", schedule.ErrLibrary)
	}
	w := network{Network: n, cell: cell.Lookup(n.Cell)}
	z, size := &w.sizes, int64(n.Element.Bytes())
	take := func(elements int) int64 {
		at := z.Weights
		z.Weights += int64(elements)*size + 64
		return at
	}
	gh := len(w.cell.Gates) * n.Hidden
	for run := range n.Runs() {
		z.Parameters = append(z.Parameters, driver.Parameters{W: take(gh * n.Width(run)), R: take(gh * n.Hidden)})
	}
	for l := range z.Parameters {
		z.Parameters[l].BX, z.Parameters[l].BR = take(gh), take(gh)
	}
	z.Workspace = 8 * int64(n.Rows()*n.Out())
	if n.Train {
		z.Kept = 8 * w.keptValues()
	}
	d.networks = append(d.networks, w)
	return len(d.networks) - 1, w.sizes, nil
}

// keptValues returns how many values the forward pass keeps: the outputs.
func (n *network) keptValues() int64 { return int64(n.Rows() * n.Out()) }

// An array is a matrix of a network in the GPU's memory.
type array struct {
	memory []byte
	view   schedule.View
}

// A call runs a network on values in double precision.
type call struct {
	driver *Driver
	*network
	values [][]float64
	arrays []array
	err    error
}

// at adds the matrix at p to the call.
func (c *call) at(p driver.Pointer, rows, cols int) schedule.View {
	m := &schedule.Matrix{Rows: rows, Cols: cols, ID: len(c.values)}
	mem, err := c.driver.view(p, int64(m.Elements()*c.Element.Bytes()))
	c.err = errors.Join(c.err, err)
	c.values = append(c.values, make([]float64, m.Elements()))
	c.arrays = append(c.arrays, array{memory: mem, view: m.All()})
	return m.All()
}

// lengths returns the steps of each sequence; nil: all have all steps.
func (n *network) lengths() (list []int) {
	if n.Lengths == "" {
		return nil
	}
	for _, length := range n.Sequences() {
		list = append(list, int(length))
	}
	return list
}

func (c *call) states(p [2]driver.Pointer) (views []schedule.View) {
	for s := range c.cell.States {
		views = append(views, c.at(p[s], c.Runs()*c.Batch, c.Hidden))
	}
	return views
}

// parameters returns the matrices of a parameter space: W, R, BX and BR.
func (c *call) parameters(base driver.Pointer) (p [4][]schedule.View) {
	gh := len(c.cell.Gates) * c.Hidden
	for run, at := range c.sizes.Parameters {
		p[0] = append(p[0], c.at(base+driver.Pointer(at.W), gh, c.Width(run)))
		p[1] = append(p[1], c.at(base+driver.Pointer(at.R), gh, c.Hidden))
		p[2] = append(p[2], c.at(base+driver.Pointer(at.BX), 1, gh))
		p[3] = append(p[3], c.at(base+driver.Pointer(at.BR), 1, gh))
	}
	return p
}

// algorithms is how many the emulated library has. The second runs only some sizes, and declines
// the others only when it runs. The third runs neither both ways nor lengths, and declines them at
// once.
const algorithms = 4

// runNetwork queues a run of a network.
func (d *Driver) runNetwork(stream int, r *driver.NetworkRun) error {
	c := &call{driver: d, network: &d.networks[r.ID]}
	if c.Algorithm >= algorithms || c.Algorithm == 1 && c.Hidden%2 != 0 {
		return fmt.Errorf("%w: the library has no such algorithm for %d units", schedule.ErrLibrary, c.Hidden)
	}
	rows := c.Rows()
	p := c.parameters(r.Weights)
	s := schedule.Stack{
		Cell: c.cell, Both: c.Both, Steps: c.Steps, Lengths: c.lengths(), X: c.at(r.X, rows, c.Input), Y: c.at(r.Y, rows, c.Out()),
		First: c.states(r.First), W: p[0], R: p[1], BX: p[2], BR: p[3],
	}
	var op schedule.Op
	if !r.Backward {
		op = schedule.Vendor{Stack: s, Last: c.states(r.Last)}
	} else {
		g := c.parameters(r.DWeights)
		op = schedule.VendorBackward{
			Stack: s, DY: c.at(r.DY, rows, c.Out()), DX: c.at(r.DX, rows, c.Input), DFirst: c.states(r.DFirst),
			DW: g[0], DR: g[1], DBX: g[2], DBR: g[3],
		}
	}
	_, err := d.view(r.Workspace, c.sizes.Workspace)
	kept, err2 := d.view(r.Kept, c.sizes.Kept)
	if !c.Train {
		err2 = nil
	}
	if err := errors.Join(c.err, err, err2); err != nil {
		return err
	}
	return d.push(command{stream: stream, wait: -1, record: -1, do: func() error { return c.do(op, s.Y, kept) }})
}

// do runs op on what the memory holds by then. The forward pass keeps its outputs; the backward
// pass checks that they are unchanged.
func (c *call) do(op schedule.Op, y schedule.View, kept []byte) error {
	for i, a := range c.arrays {
		for j := range c.values[i] {
			c.values[i][j] = c.get(a.memory, j)
		}
	}
	devicetest.Evaluate(op, c.values)
	for _, v := range op.Writes() {
		a := c.arrays[v.M.ID]
		for j, x := range c.values[v.M.ID] {
			c.set(a.memory, j, x)
		}
	}
	if !c.Train {
		return nil
	}
	_, backward := op.(schedule.VendorBackward)
	for j := range int(c.keptValues()) {
		out := c.get(c.arrays[y.M.ID].memory, j)
		if !backward {
			binary.LittleEndian.PutUint64(kept[8*j:], math.Float64bits(out))
		} else if math.Float64frombits(binary.LittleEndian.Uint64(kept[8*j:])) != out {
			return errors.New("emulator: something has overwritten the outputs of a network's forward pass, or its copy of them")
		}
	}
	return nil
}

func (c *call) get(mem []byte, i int) float64 {
	if c.Element == driver.Single {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(mem[4*i:])))
	}
	return float64(c.Element.Widen(binary.LittleEndian.Uint16(mem[2*i:])))
}

func (c *call) set(mem []byte, i int, v float64) {
	if c.Element == driver.Single {
		binary.LittleEndian.PutUint32(mem[4*i:], math.Float32bits(float32(v)))
		return
	}
	binary.LittleEndian.PutUint16(mem[2*i:], c.Element.Narrow(float32(v)))
}
