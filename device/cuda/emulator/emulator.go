// Package emulator is a CUDA driver without a GPU. The host's C++ compiler builds the kernels,
// which run unchanged, thread by thread. So their results, geometry and arguments can be tested on
// any machine. Work that streams may do in any order is done in random order. The emulator is slow
// and measures nothing.
package emulator

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cuda/driver"
)

// A Driver implements driver.Driver.
type Driver struct {
	Dry  bool // check launches and products, but run none
	Late int  // number of cooperative launches to come whose last blocks start only after all others have ended

	Group *allreduce.Group // replicas that add up their gradients; nil: this one is alone

	sms      int
	dir      string // of loaded kernels
	rng      *rand.Rand
	memory   []block
	kernels  []kernel
	networks []network
	queues   [][]command // of driver.Copies first, then one per stream
	events   []event
	unused   []driver.Event // freed events, to be reused as a GPU's driver does

	hosts        []uintptr   // streams of a host program
	hostQueues   [][]command // one for each
	hostCaptures bool        // what follows is part of a graph of the host program
	capturedHost int         // number of the stream that it captures

	capturing bool
	captured  []command
	graphs    [][]command
	sequences map[driver.Sequence][]driver.Call
	next      driver.Sequence
}

type kernel struct {
	run      uintptr
	pointers []bool // per parameter
}

// An event has passed once as many of its records were executed as were queued.
type event struct {
	recorded, passed int
	timed            bool
	captured         bool // the last record belongs to a graph, so nothing outside it may wait for it
}

// A command waits in a stream's queue. It waits for a version of an event, records one, or runs do.
type command struct {
	stream  int
	wait    int // event; -1: none
	version int
	record  int // event; -1: none
	do      func() error
}

// New returns a driver that pretends to have sms multiprocessors.
func New(sms int, seed uint64) (*Driver, error) {
	dir, err := os.MkdirTemp("", "rnnbench-emulator")
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return &Driver{sms: sms, dir: dir, rng: rand.New(rand.NewPCG(seed, 1)), queues: make([][]command, 2), sequences: map[driver.Sequence][]driver.Call{}}, nil
}

const (
	shared        = 227 << 10
	mostArguments = 4096 // bytes per launch, on every GPU
)

// Properties implements driver.Driver.
func (d *Driver) Properties() driver.Properties {
	replicas := 0
	if d.Group != nil {
		replicas = d.Group.Replicas()
	}
	return driver.Properties{
		Replicas: replicas, Model: "Emulator", Capability: 90, Hopper: true, SMs: d.sms, Shared: shared, L2: 1 << 20, Memory: 1 << 33, Workspace: 1 << 20,
		Libraries: map[string]string{"emulator": "1"},
	}
}

// Load implements driver.Driver.
func (d *Driver) Load(image []byte, name string) (driver.Kernel, error) {
	path := filepath.Join(d.dir, fmt.Sprintf("%s-%d.so", name, len(d.kernels)))
	if err := os.WriteFile(path, image, 0o777); err != nil {
		return driver.Kernel{}, fmt.Errorf("emulator: %w", err)
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return driver.Kernel{}, fmt.Errorf("emulator: %w", err)
	}
	var at [3]uintptr
	for i, symbol := range []string{"emulate", "parameters", "pointers"} {
		if at[i], err = purego.Dlsym(lib, symbol); err != nil {
			return driver.Kernel{}, fmt.Errorf("emulator: %w", err)
		}
	}
	k := kernel{run: at[0], pointers: make([]bool, *(*int32)(pointer(at[1])))}
	for i := range k.pointers {
		k.pointers[i] = *(*byte)(pointer(at[2] + uintptr(i))) != 0
	}
	d.kernels = append(d.kernels, k)
	return driver.Kernel{ID: len(d.kernels) - 1}, nil
}

// Resident implements driver.Driver: one block, if it fits.
func (d *Driver) Resident(_ driver.Kernel, threads, bytes int) (int, error) {
	if bytes > shared || threads > 1024 {
		return 0, nil
	}
	return 1, nil
}

// Clusters implements driver.Driver.
func (d *Driver) Clusters(k driver.Kernel, size, threads, bytes int) (int, error) {
	n, err := d.Resident(k, threads, bytes)
	if size > 16 {
		n = 0
	}
	return n * d.sms / size, err
}

// Streams implements driver.Driver.
func (d *Driver) Streams(n int) error {
	for len(d.queues) < n-driver.Copies {
		d.queues = append(d.queues, nil)
	}
	return nil
}

// NewEvent implements driver.Driver.
func (d *Driver) NewEvent(timed bool) (driver.Event, error) {
	for i, e := range d.unused {
		if d.events[e].timed == timed {
			d.unused = slices.Delete(d.unused, i, i+1)
			return e, nil
		}
	}
	d.events = append(d.events, event{timed: timed})
	return driver.Event(len(d.events) - 1), nil
}

// FreeEvent implements driver.Driver.
func (d *Driver) FreeEvent(e driver.Event) error {
	d.unused = append(d.unused, e)
	return nil
}

// geometry is Geometry in runtime.h.
type geometry struct {
	grid, block [3]uint32
	shared      uint64
	cooperative int32
	cluster     int32
	late        int32
	room        uintptr // of the C library, for stacks and shared memory
	bytes       uint64
}

// rooms are those of launches that ended. Later ones take them over, of any driver.
var rooms struct {
	sync.Mutex
	idle []geometry
}

// run calls a kernel and returns what it returns.
func (g *geometry) run(kernel uintptr, params []unsafe.Pointer) uintptr {
	rooms.Lock()
	if n := len(rooms.idle); n > 0 {
		g.room, g.bytes = rooms.idle[n-1].room, rooms.idle[n-1].bytes
		rooms.idle = rooms.idle[:n-1]
	}
	rooms.Unlock()
	defer func() {
		rooms.Lock()
		rooms.idle = append(rooms.idle, *g)
		rooms.Unlock()
	}()
	code, _, _ := purego.SyscallN(kernel, uintptr(unsafe.Pointer(g)), uintptr(unsafe.Pointer(&params[0])))
	return code
}

// launch checks what a GPU would, and more: that each parameter has an argument, and each pointer
// leads to allocated memory. Then it queues the run.
func (d *Driver) launch(stream int, l *driver.Launch) error {
	k := d.kernels[l.Kernel.ID]
	tables := min(len(l.Table), 1)
	if len(l.Params) != len(k.pointers) || len(l.Params) != len(l.Args)+len(l.Tensors)+tables {
		return fmt.Errorf("emulator: %d arguments, %d tensors and %d tables for %d parameters", len(l.Args), len(l.Tensors), tables, len(k.pointers))
	}
	if bytes := 8 * (len(l.Args) + len(l.Table)); bytes > mostArguments {
		return fmt.Errorf("emulator: %d bytes of arguments", bytes)
	}
	g := geometry{shared: uint64(l.Shared), cluster: int32(max(1, l.Cluster))}
	for i := range 3 {
		most := 65535
		if i == 0 {
			most = math.MaxInt32
		}
		if l.Grid[i] < 1 || l.Grid[i] > most || l.Block[i] < 1 {
			return fmt.Errorf("emulator: a grid of %v blocks of %v threads", l.Grid, l.Block)
		}
		g.grid[i], g.block[i] = uint32(l.Grid[i]), uint32(l.Block[i])
	}
	if threads := l.Block[0] * l.Block[1] * l.Block[2]; threads > 1024 || l.Shared > shared {
		return fmt.Errorf("emulator: blocks of %d threads and %d bytes", threads, l.Shared)
	}
	if l.Grid[0]%int(g.cluster) != 0 || int(g.cluster) > min(d.sms, 16) {
		return fmt.Errorf("emulator: clusters of %d in a grid of %v blocks on %d multiprocessors", g.cluster, l.Grid, d.sms)
	}
	if l.Cooperative {
		if g.cooperative = 1; l.Grid[0]*l.Grid[1]*l.Grid[2] > d.sms {
			return fmt.Errorf("emulator: %v blocks at the same time on %d multiprocessors", l.Grid, d.sms)
		}
	}
	for i, is := range k.pointers {
		if !is {
			continue
		}
		if _, err := d.view(driver.Pointer(l.Args[i]), 1); err != nil {
			return fmt.Errorf("argument %d of %s: %w", i, l.Name, err)
		}
	}
	for i, t := range l.Tensors {
		if err := d.tensor(t); err != nil {
			return fmt.Errorf("tensor %d of %s: %w", i, l.Name, err)
		}
	}
	if d.Dry {
		return d.push(command{stream: stream, wait: -1, record: -1})
	}
	name, args, tensors, table := l.Name, slices.Clone(l.Args), slices.Clone(l.Tensors), slices.Clone(l.Table)
	return d.push(command{stream: stream, wait: -1, record: -1, do: func() error {
		params := make([]unsafe.Pointer, len(args))
		for i := range args {
			params[i] = unsafe.Pointer(&args[i])
		}
		for _, t := range tensors {
			params = append(params, t.Image())
		}
		if len(table) > 0 {
			params = append(params, unsafe.Pointer(&table[0]))
		}
		g := g
		if d.Late > 0 && g.cooperative != 0 {
			d.Late--
			g.late = 1
		}
		if g.run(k.run, params) != 0 {
			return fmt.Errorf("emulator: %s: lanes that left a wait one by one arrive at a named barrier, which counts their warp more than once", name)
		}
		return nil
	}})
}

// tensor fills t's image as tensor_map in runtime.h, and checks what a GPU would.
func (d *Driver) tensor(t *driver.Tensor) error {
	size := t.Element.Bytes()
	bytes := t.Sizes[0] * size
	for i, n := range t.Strides {
		if n%16 != 0 || n <= 0 {
			return fmt.Errorf("emulator: a stride of %d bytes", n)
		}
		bytes += (t.Sizes[i+1] - 1) * n
	}
	for i, n := range t.Box {
		if n < 1 || n > 256 || t.Sizes[i] < 1 {
			return fmt.Errorf("emulator: a box of %v in %v", t.Box, t.Sizes)
		}
	}
	if t.At%16 != 0 || t.Box[0]*size%16 != 0 {
		return fmt.Errorf("emulator: rows of %d bytes at %#x", t.Box[0]*size, t.At)
	}
	if _, err := d.view(t.At, int64(bytes)); err != nil {
		return err
	}
	if t.Turned && t.Box[0]*size != 128 {
		return fmt.Errorf("emulator: turned rows of %d bytes", t.Box[0]*size)
	}
	image := (*[11]int64)(t.Image())
	image[0], image[1] = int64(t.At), int64(size)
	for i := range 3 {
		image[2+i], image[7+i] = int64(t.Sizes[i]), int64(t.Box[i])
	}
	image[5], image[6] = int64(t.Strides[0]), int64(t.Strides[1])
	if image[10] = 0; t.Turned {
		image[10] = 1
	}
	return nil
}

// Record implements driver.Driver.
func (d *Driver) Record(e driver.Event, stream int) error {
	d.events[e].captured = d.capturing
	return d.push(command{stream: stream, wait: -1, record: int(e)})
}

// WaitFor implements driver.Driver.
func (d *Driver) WaitFor(e driver.Event, stream int) error {
	if err := d.outside(e); err != nil {
		return err
	}
	return d.push(command{stream: stream, wait: int(e), record: -1})
}

// outside returns an error if e belongs to a graph: CUDA refuses to wait for it elsewhere.
func (d *Driver) outside(e driver.Event) error {
	if d.events[e].captured && !d.capturing {
		return fmt.Errorf("emulator: event %d was last recorded in a graph", e)
	}
	return nil
}

// push queues c, or keeps it for the graph that is captured.
func (d *Driver) push(c command) error {
	queue := d.queue(c.stream)
	if queue == nil {
		return fmt.Errorf("emulator: there is no stream %d", c.stream)
	}
	if d.capturing {
		d.captured = append(d.captured, c)
		return nil
	}
	if c.record >= 0 {
		d.events[c.record].recorded++
	}
	if c.wait >= 0 {
		c.version = d.events[c.wait].recorded
	}
	*queue = append(*queue, c)
	return nil
}

// queue returns the queue of a stream; nil: there is no such stream.
func (d *Driver) queue(stream int) *[]command {
	switch at := stream - driver.Copies; {
	case stream >= firstHost && stream-firstHost < len(d.hostQueues):
		return &d.hostQueues[stream-firstHost]
	case at >= 0 && at < len(d.queues):
		return &d.queues[at]
	}
	return nil
}

// drain executes all queued commands.
func (d *Driver) drain() error {
	if err := d.alone("waiting for all work"); err != nil {
		return err
	}
	return d.until(func() bool { return false })
}

// until executes queued commands, taking streams in random order, until done returns true or none
// is left.
func (d *Driver) until(done func() bool) error {
	for !done() {
		var ready []*[]command
		left := false
		for _, queues := range [][][]command{d.queues, d.hostQueues} {
			for s, q := range queues {
				if len(q) == 0 {
					continue
				}
				left = true
				if c := q[0]; c.wait < 0 || d.events[c.wait].passed >= c.version {
					ready = append(ready, &queues[s])
				}
			}
		}
		if !left {
			return nil
		}
		if len(ready) == 0 {
			return errors.New("emulator: streams wait for each other")
		}
		s := ready[d.rng.IntN(len(ready))]
		c := (*s)[0]
		*s = (*s)[1:]
		if c.record >= 0 {
			d.events[c.record].passed++
		}
		if c.do != nil {
			if err := c.do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Await implements driver.Driver. Commands that need not precede e may stay queued.
func (d *Driver) Await(e driver.Event) error {
	if err := errors.Join(d.outside(e), d.alone("waiting for an event")); err != nil {
		return err
	}
	want := d.events[e].recorded
	return d.until(func() bool { return d.events[e].passed >= want })
}

// Elapsed implements driver.Driver: it measures nothing.
func (d *Driver) Elapsed(_, _ driver.Event) (float64, error) { return 1e-6, nil }

// BeginCapture implements driver.Driver.
func (d *Driver) BeginCapture() error {
	if err := d.alone("capturing another graph"); err != nil {
		return err
	}
	d.capturing, d.captured = true, nil
	return nil
}

// EndCapture implements driver.Driver.
func (d *Driver) EndCapture() (driver.Graph, error) {
	d.capturing = false
	d.graphs = append(d.graphs, d.captured)
	return driver.Graph(len(d.graphs) - 1), nil
}

// Replay implements driver.Driver.
func (d *Driver) Replay(g driver.Graph) error {
	for _, c := range d.graphs[g] {
		if err := d.push(c); err != nil {
			return err
		}
	}
	return nil
}

// FreeGraph implements driver.Driver.
func (d *Driver) FreeGraph(g driver.Graph) error {
	d.graphs[g] = nil
	return nil
}

// Throttled implements driver.Driver.
func (d *Driver) Throttled() bool { return false }

// Power implements driver.Driver.
func (d *Driver) Power() (device.Power, error) {
	return device.Power{}, errors.New("an emulated GPU has no energy counter")
}

// Survey implements driver.Driver.
func (d *Driver) Survey() []device.Finding { return []device.Finding{{Name: "clock", Value: "none"}} }

// Close implements driver.Driver.
func (d *Driver) Close() error { return os.RemoveAll(d.dir) }
