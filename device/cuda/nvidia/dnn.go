//go:build cuda

package nvidia

/*
#include <stdint.h>

static int setDropout(uintptr_t f, uintptr_t descriptor, uintptr_t handle) {
	return ((int (*)(uintptr_t, uintptr_t, float, void*, size_t, unsigned long long))f)(descriptor, handle, 0, 0, 0, 0);
}

static const char* describe(uintptr_t f, int status) { return ((const char* (*)(int))f)(status); }
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// dnn is cuDNN with a handle per stream.
type dnn struct {
	library  *library
	version  string
	dropout  uintptr // descriptor of no dropout; 0: not created yet
	handles  []uintptr
	networks []*network
	building map[driver.Network]*building
	jobs     chan *building // queue of the builders; nil: not started
}

// loadDNN loads cuDNN 9 or 8, whose interfaces for networks are the same.
func loadDNN() (*dnn, error) {
	l, err := loadLibrary("libcudnn.so.9", "libcudnn.so.8")
	if err != nil {
		return nil, fmt.Errorf("cuDNN is unavailable: %w", err)
	}
	v := l.call("cudnnGetVersion")
	if v < 8000 {
		return nil, fmt.Errorf("cuDNN is unavailable: %s reports version %d; version 8 or later is needed", l.path, v)
	}
	scale := 1000 // 8.9.7 is 8907
	if v >= 90000 {
		scale = 10000 // 9.1.4 is 90104
	}
	return &dnn{library: l, building: map[driver.Network]*building{}, version: fmt.Sprintf("%d.%d.%d", v/scale, v%scale/100, v%100)}, nil
}

// do calls a function. The error wraps schedule.ErrLibrary if the library declines.
func (d *dnn) do(name string, args ...uintptr) error {
	return one(d.call(name, args...))
}

func (d *dnn) call(name string, args ...uintptr) call {
	return call{name, args, d.library, d.code}
}

// code turns the status of a function into an error. It looks at the name of the status, since
// versions number them differently.
func (d *dnn) code(name string, code int) error {
	switch code {
	case 0:
		return nil
	case missing:
		return fmt.Errorf("%w: cuDNN %s has no %s", schedule.ErrLibrary, d.version, name)
	}
	word := fmt.Sprint(code)
	if at := d.library.find("cudnnGetErrorString"); at != 0 {
		word = C.GoString(C.describe(C.uintptr_t(at), C.int(code)))
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(word, p) })
	}
	var cause error
	switch {
	case has("NOT_SUPPORTED", "BAD_PARAM", "ARCH_MISMATCH", "INVALID_VALUE", "RUNTIME_PREREQUISITE_MISSING"):
		cause = schedule.ErrLibrary
	case has("ALLOC"):
		cause = device.ErrMemory
	case has("EXECUTION_FAILED"):
		cause = device.ErrFault
	default:
		return fmt.Errorf("cuDNN %s: %s returns %s", d.version, name, word)
	}
	return fmt.Errorf("%w: cuDNN %s: %s returns %s", cause, d.version, name, word)
}

// add creates the handle of the next stream.
func (d *dnn) add(stream uintptr) error {
	var h uintptr
	if err := d.do("cudnnCreate", address(&h)); err != nil {
		return err
	}
	if err := d.do("cudnnSetStream", h, stream); err != nil {
		return errors.Join(err, d.do("cudnnDestroy", h))
	}
	d.handles = append(d.handles, h)
	return nil
}

// A network is a cuDNN RNN with its descriptors.
type network struct {
	driver.Network
	rnn, x, y, h uintptr
	lengths      cu.DevicePtr // lengths of the sequences, on the GPU
	sizes        driver.Sizes
	talk         talk
}

// talk holds arguments and results of calls to the library. It must be on the heap, since Go moves
// stacks.
type talk struct {
	lengths           []int32
	fill              float32
	shape, strides    [8]int32
	kind, dims        int32
	space, work, kept uint64
	weight, bias      uintptr // descriptors
	at                [2]uintptr
}

// Constants of cuDNN.
const (
	doubleBias, linearInput       = 2, 0
	unidirectional, bidirectional = 0, 1

	dnnSingle, dnnHalf, dnnBrain          = 0, 2, 9
	defaultMath, tensorMath, multiplyAdds = 0, 1, 3

	unpaddedIO, paddedIO = 0, 1

	persistDynamic = 2
	paddedSteps    = 0 // layout: step by step, with all sequences at each step
	packedSteps    = 1 // layout: step by step, with the sequences that reach each step, the longest first
	inference      = 0
	training       = 1
	addGradients   = 0
)

// modes lists the cells in the order of cudnnRNNMode_t.
func modes() []string { return []string{"rnn-relu", "rnn-tanh", "lstm", "gru"} }

func dnnType(e driver.Element) uintptr {
	switch e {
	case driver.Brain:
		return dnnBrain
	case driver.Half:
		return dnnHalf
	}
	return dnnSingle
}

// arithmetic returns the math type of products. Single precision uses plain multiply-adds unless n
// asks for TF32.
func arithmetic(n driver.Network) uintptr {
	switch {
	case n.Element != driver.Single:
		return tensorMath
	case n.TF32:
		return defaultMath
	}
	return multiplyAdds
}

// none creates the descriptor of no dropout, once.
func (d *dnn) none() error {
	if d.dropout != 0 {
		return nil
	}
	if err := d.do("cudnnCreateDropoutDescriptor", address(&d.dropout)); err != nil {
		return err
	}
	const name = "cudnnSetDropoutDescriptor"
	return d.code(name, int(C.setDropout(C.uintptr_t(d.library.find(name)), C.uintptr_t(d.dropout), C.uintptr_t(d.handles[0]))))
}

// network creates n with a handle that no other thread uses.
func (d *dnn) network(n driver.Network, handle uintptr) (*network, error) {
	mode := slices.Index(modes(), n.Cell)
	if mode < 0 {
		return nil, fmt.Errorf("%w: cuDNN does not support cell %s", schedule.ErrCell, n.Cell)
	}
	w := &network{Network: n}
	e, q := dnnType(n.Element), &w.talk
	q.lengths = n.Sequences()
	q.shape = [8]int32{int32(n.Runs()), int32(n.Batch), int32(n.Hidden)}
	q.strides = [8]int32{int32(n.Batch * n.Hidden), int32(n.Hidden), 1}
	pass, direction := uintptr(inference), uintptr(unidirectional)
	layout, padding := uintptr(packedSteps), uintptr(unpaddedIO)
	if n.Padded {
		layout, padding = paddedSteps, paddedIO
	}
	if n.Train {
		pass = training
	}
	if n.Both {
		direction = bidirectional
	}
	calls := []func() error{
		func() error { return d.do("cudnnCreateRNNDescriptor", address(&w.rnn)) },
		func() error { return d.do("cudnnCreateRNNDataDescriptor", address(&w.x)) },
		func() error { return d.do("cudnnCreateRNNDataDescriptor", address(&w.y)) },
		func() error { return d.do("cudnnCreateTensorDescriptor", address(&w.h)) },
		func() error { return d.do("cudnnCreateTensorDescriptor", address(&q.weight)) },
		func() error { return d.do("cudnnCreateTensorDescriptor", address(&q.bias)) },
		func() error {
			return d.do("cudnnSetRNNDescriptor_v8", w.rnn, uintptr(n.Algorithm), uintptr(mode), doubleBias, direction, linearInput,
				e, dnnSingle, arithmetic(n), uintptr(n.Input), uintptr(n.Hidden), uintptr(n.Hidden), uintptr(n.Layers), d.dropout, padding)
		},
		func() error {
			if n.Algorithm != persistDynamic {
				return nil
			}
			return d.do("cudnnBuildRNNDynamic", handle, w.rnn, uintptr(n.Batch))
		},
		func() error {
			return d.do("cudnnSetRNNDataDescriptor", w.x, e, layout, uintptr(n.Steps), uintptr(n.Batch), uintptr(n.Input), address(&q.lengths[0]), address(&q.fill))
		},
		func() error {
			return d.do("cudnnSetRNNDataDescriptor", w.y, e, layout, uintptr(n.Steps), uintptr(n.Batch), uintptr(n.Out()), address(&q.lengths[0]), address(&q.fill))
		},
		func() error {
			return d.do("cudnnSetTensorNdDescriptor", w.h, e, 3, address(&q.shape[0]), address(&q.strides[0]))
		},
		func() error { return d.do("cudnnGetRNNWeightSpaceSize", handle, w.rnn, address(&q.space)) },
		func() error {
			return d.do("cudnnGetRNNTempSpaceSizes", handle, w.rnn, pass, w.x, address(&q.work), address(&q.kept))
		},
	}
	for _, call := range calls {
		if err := call(); err != nil {
			return nil, err
		}
	}
	w.sizes = driver.Sizes{Weights: int64(q.space), Workspace: int64(q.work), Kept: int64(q.kept)}
	for run := range n.Runs() {
		p, err := d.parameters(w, run, handle)
		if err != nil {
			return nil, err
		}
		w.sizes.Parameters = append(w.sizes.Parameters, p)
	}
	var err error
	if w.lengths, err = cu.MemAlloc(4 * int64(n.Batch)); err != nil {
		return nil, failure(err)
	}
	return w, failure(cu.MemcpyHtoD(w.lengths, unsafe.Pointer(&q.lengths[0]), 4*int64(n.Batch)))
}

// parameters returns where the parameters of one run lie in the space of weights, as offsets in
// bytes. A run is what the library calls a pseudo-layer; both number them alike. The library tells
// the weights and bias of each gate, for the input first. The gates must be adjacent plain
// matrices; their order is ours.
func (d *dnn) parameters(w *network, run int, handle uintptr) (driver.Parameters, error) {
	gates, width := len(cell.Lookup(w.Cell).Gates), w.Width(run)
	const space = 1 << 20 // base address of weights that need not exist; answers are relative to it
	q := &w.talk
	var first [4]int64 // offsets of W, R and their biases
	for id := range 2 * gates {
		if err := d.do("cudnnGetRNNWeightParams", handle, w.rnn, uintptr(run), uintptr(w.sizes.Weights), space, uintptr(id),
			q.weight, address(&q.at[0]), q.bias, address(&q.at[1])); err != nil {
			return driver.Parameters{}, err
		}
		part, gate := id/gates, id%gates
		for k, descriptor := range []uintptr{q.weight, q.bias} {
			cols := 1
			if k == 0 {
				cols = []int{width, w.Hidden}[part]
			}
			if err := d.do("cudnnGetTensorNdDescriptor", descriptor, 3, address(&q.kind), address(&q.dims), address(&q.shape[0]), address(&q.strides[0])); err != nil {
				return driver.Parameters{}, err
			}
			at, start := int64(q.at[k])-space, &first[part+2*k]
			if gate == 0 {
				*start = at
			}
			if at != *start+int64(gate*w.Hidden*cols*w.Element.Bytes()) || int(q.shape[1]) != w.Hidden || int(q.shape[2]) != cols || int(q.strides[1]) != cols {
				return driver.Parameters{}, fmt.Errorf("%w: cuDNN %s keeps gate %d of run %d as %v, %v apart, at %d: the gates are not adjacent plain matrices",
					schedule.ErrLibrary, d.version, id, run, q.shape[:3], q.strides[:3], at)
			}
		}
	}
	return driver.Parameters{W: first[0], R: first[1], BX: first[2], BR: first[3]}, nil
}

// run returns the calls of a network's run on a stream. s is that stream's handle, on which extra,
// a call of libcuda, clears the gradients of weights: cuDNN adds to them.
func (d *dnn) run(stream int, s uintptr, r *driver.NetworkRun, extra func(name string, args ...uintptr) call) []call {
	w, h := d.networks[r.ID], d.handles[stream]
	at := func(p driver.Pointer) uintptr { return uintptr(p) }
	bytes := func(n int64) uintptr { return uintptr(n) }
	lengths, z := uintptr(w.lengths), &w.sizes
	c := uintptr(0) // descriptor of the cell states of an LSTM
	if r.First[1] != 0 {
		c = w.h
	}
	if !r.Backward {
		pass := uintptr(inference)
		if w.Train {
			pass = training
		}
		return []call{d.call("cudnnRNNForward", h, w.rnn, pass, lengths, w.x, at(r.X), w.y, at(r.Y), w.h, at(r.First[0]), at(r.Last[0]),
			c, at(r.First[1]), at(r.Last[1]), bytes(z.Weights), at(r.Weights), bytes(z.Workspace), at(r.Workspace), bytes(z.Kept), at(r.Kept))}
	}
	return []call{
		d.call("cudnnRNNBackwardData_v8", h, w.rnn, lengths, w.y, at(r.Y), at(r.DY), w.x, at(r.DX), w.h, at(r.First[0]), 0, at(r.DFirst[0]),
			c, at(r.First[1]), 0, at(r.DFirst[1]), bytes(z.Weights), at(r.Weights), bytes(z.Workspace), at(r.Workspace), bytes(z.Kept), at(r.Kept)),
		extra("cuMemsetD8Async", at(r.DWeights), 0, bytes(z.Weights), s),
		d.call("cudnnRNNBackwardWeights_v8", h, w.rnn, addGradients, lengths, w.x, at(r.X), w.h, at(r.First[0]), w.y, at(r.Y),
			bytes(z.Weights), at(r.DWeights), bytes(z.Workspace), at(r.Workspace), bytes(z.Kept), at(r.Kept)),
	}
}
