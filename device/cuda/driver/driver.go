// Package driver is what package cuda needs of CUDA: memory, kernels, launches,
// products and streams. The real driver and the emulator are behind it.
package driver

import (
	"unsafe"

	"rnnbench/device"
)

// Clocked is a driver that knows the clock of its multiprocessors in hertz; 0: not now.
type Clocked interface {
	Clock() float64
}

// A Driver is what the package needs of CUDA: the seam behind which the real one
// and the emulator are. All calls come from one goroutine, which the caller of
// the package keeps on one thread.
type Driver interface {
	Properties() Properties

	// FreeMemory is the number of bytes that can be allocated.
	FreeMemory() (int64, error)

	Alloc(bytes int64) (Pointer, error)
	Free(p Pointer) error
	Clear(parts ...Extent) error // to zeros
	Upload(to Pointer, from []byte) error
	Download(to []byte, from Pointer) error

	// HostMemory is memory of the host that the GPU reaches by itself. CopyIn moves what is there in
	// order with what a stream is given, and CopyOut with what stream 0 is given: it has to be left
	// alone until then. Copy moves bytes within the GPU's memory, on stream 0.
	HostMemory(bytes int) ([]byte, error)
	FreeHostMemory(m []byte) error
	CopyIn(to Pointer, from []byte, stream int) error
	CopyOut(to []byte, from Pointer) error
	Copy(to, from Pointer, bytes int64) error

	// Load loads a compiled kernel, which stays until the driver is closed.
	Load(image []byte, name string) (Kernel, error)

	// Resident is how many blocks of so many threads and so much dynamic shared
	// memory run at the same time on a multiprocessor; 0: not even one. It also
	// lets the kernel have that much.
	Resident(k Kernel, threads, shared int) (int, error)

	// Clusters is how many clusters of so many such blocks run at the same time.
	Clusters(k Kernel, size, threads, shared int) (int, error)

	// Streams makes streams 0 … n-1 usable.
	Streams(n int) error
	NewEvent(timed bool) (Event, error)
	FreeEvent(e Event) error
	Record(e Event, stream int) error
	WaitFor(e Event, stream int) error // has what the stream is given from now on wait for e, if it was ever recorded

	// Sequence readies calls so that Issue makes all of them, in order, with as
	// little of the host's time as each takes. Where one fails, the others are not
	// made, and at says which it was.
	Sequence(calls []Call) (Sequence, error)
	Issue(s Sequence) (at int, err error)
	FreeSequence(s Sequence) error // of 0, which is none, nothing

	// Await waits for e to pass; Elapsed is the time between two timed events
	// that have passed, in seconds.
	Await(e Event) error
	Elapsed(from, to Event) (float64, error)

	// BeginCapture has what is launched on stream 0, and on streams that wait
	// for it, become a graph; EndCapture returns it.
	BeginCapture() error
	EndCapture() (Graph, error)
	Replay(g Graph) error // on stream 0
	FreeGraph(g Graph) error

	Networks

	// Throttled reports whether something holds the clock down right now.
	Throttled() bool
	// Power reads the counter of energy. An error says why there is none.
	Power() (device.Power, error)
	// Survey says what state the GPU is in, a Remedy where something is wrong.
	Survey() []device.Finding

	Close() error
}

// Copies is a stream for copies and events alone. It need not be made usable.
const Copies = -1

// Handles of a Driver's.
type (
	Pointer  uint64
	Event    int
	Graph    int
	Sequence int
)

// An Extent is part of the GPU's memory.
type Extent struct {
	At    Pointer
	Bytes int64
}

// A Call is what a stream is given to do: a launch, a product, a network, a sum over
// replicas, a graph, a copy or, where there is none of these, to record an event or to wait for it.
type Call struct {
	Stream  int
	Launch  *Launch
	Product *Product
	Network *NetworkRun
	Sum     *Sum
	Graph   *Graph // on stream 0
	Copy    *Copy  // out of the GPU's memory on stream 0 alone
	Event   Event
	Wait    bool
	Outside bool // record the event whenever the graph that this is captured for is replayed, for the host to see
}

// A Copy is from the host's memory to the GPU's, or back: see CopyIn and CopyOut.
type Copy struct {
	Host []byte
	GPU  Pointer
	Out  bool
}

// IsEvent reports whether c records an event or waits for it.
func (c *Call) IsEvent() bool {
	return c.Launch == nil && c.Product == nil && c.Network == nil && c.Sum == nil && c.Graph == nil && c.Copy == nil
}

// String says what fails where a call does.
func (c *Call) String() string {
	switch {
	case c.Launch != nil:
		return "kernel " + c.Launch.Name
	case c.Product != nil:
		return "product"
	case c.Network != nil:
		return "network"
	case c.Sum != nil:
		return "sum over replicas"
	case c.Graph != nil:
		return "graph"
	case c.Copy != nil:
		return "copy"
	}
	return "event"
}

// A Kernel is a loaded function.
type Kernel struct {
	ID        int
	Registers int // per thread
	Static    int // bytes of static shared memory
	Local     int // bytes of local memory per thread: spills
}

// A Launch is a kernel with its geometry and arguments, eight bytes each.
type Launch struct {
	Kernel      Kernel
	Name        string
	Grid, Block [3]int
	Shared      int  // bytes of dynamic shared memory
	Cooperative bool // all blocks at the same time
	Cluster     int  // blocks of a cluster, side by side in the grid; 0: no clusters
	Urgent      bool // takes what room there is before launches that are not
	Early       bool // may begin before what is ahead of it on its stream has ended, for which it waits itself
	Args        []uint64
	Tensors     []*Tensor        // behind the arguments
	Table       []uint64         // one more argument, a structure of these words; empty: there is none
	Params      []unsafe.Pointer // one per argument and tensor, and the table
}

// A Tensor is part of a matrix as the copy engine of a GPU knows it: columns of
// each member of a batch at each time. A Box of it is copied at once.
type Tensor struct {
	At      Pointer
	Element Element
	Sizes   [3]int // columns, batch, time
	Strides [2]int // bytes from a member of the batch, and from a time, to the next
	Box     [3]int
	Turned  bool // boxes have rows of 128 bytes in shared memory, whose pieces of 16 change places: the i-th of row r is the i^r%8-th

	image [24]uint64
}

// Image is where a driver has the 128 bytes that kernels are given for t, whose
// address is a multiple of 64.
func (t *Tensor) Image() unsafe.Pointer {
	at := unsafe.Pointer(&t.image)
	return unsafe.Add(at, -uintptr(at)&63)
}

// A Product is C = op(A)·op(B), or C += …, of row-major matrices; sums are
// single precision.
type Product struct {
	M, N, K        int
	A, B, C        Pointer
	LdA, LdB, LdC  int
	TransA, TransB bool
	Accumulate     bool
	Scale          Pointer // of two values of single precision that op(A)·op(B) and, in place of Accumulate, C are multiplied by; 0: none
	Operands       Element // of A and B
	Result         Element // of C
	TF32           bool    // round single-precision operands to TF32
	Pick           bool    // by the fastest of the library's algorithms, which are tried when a sequence is readied: that may overwrite C
}

// A Compiler turns CUDA C++ into what a Driver loads.
type Compiler interface {
	// Version is part of the key of what is compiled.
	Version() string
	Compile(name, source string) ([]byte, error)
}

// Pack points Params at Args, Tensors and Table.
func (l *Launch) Pack() {
	l.Params = make([]unsafe.Pointer, len(l.Args), len(l.Args)+len(l.Tensors)+1)
	for i := range l.Args {
		l.Params[i] = unsafe.Pointer(&l.Args[i])
	}
	for _, t := range l.Tensors {
		l.Params = append(l.Params, t.Image())
	}
	if len(l.Table) > 0 {
		l.Params = append(l.Params, unsafe.Pointer(&l.Table[0]))
	}
}
