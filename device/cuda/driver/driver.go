// Package driver declares what package cuda needs of CUDA: memory, kernels, launches, products and
// streams. Package nvidia implements it with the real driver; the emulator implements it on the host.
package driver

import (
	"unsafe"

	"rnnbench/device"
)

// Clocked is a driver that can read the clock of its multiprocessors, in hertz; 0: unknown now.
type Clocked interface {
	Clock() float64
}

// A Driver is all that package cuda needs of CUDA. The real driver and the emulator implement it.
// Calls come one at a time, from threads that have entered: see Host.
type Driver interface {
	Properties() Properties

	// FreeMemory returns the number of bytes that can be allocated.
	FreeMemory() (int64, error)

	Alloc(bytes int64) (Pointer, error)
	Free(p Pointer) error
	Clear(parts ...Extent) error // to zeros
	Upload(to Pointer, from []byte) error
	Download(to []byte, from Pointer) error

	// HostMemory allocates memory of the host that the GPU can reach. CopyIn copies from it in
	// order with the other work of a stream, and CopyOut copies to it in order with stream 0. The
	// caller leaves that memory alone until then. Copy moves bytes within the GPU's memory, on
	// stream 0.
	HostMemory(bytes int) ([]byte, error)
	FreeHostMemory(m []byte) error
	CopyIn(to Pointer, from []byte, stream int) error
	CopyOut(to []byte, from Pointer) error
	Copy(to, from Pointer, bytes int64) error

	// Load loads a compiled kernel. It stays loaded until the driver is closed.
	Load(image []byte, name string) (Kernel, error)

	// Resident returns how many blocks of so many threads and so many bytes of dynamic shared
	// memory run on a multiprocessor at the same time; 0: not even one. It also allows the kernel
	// that much shared memory.
	Resident(k Kernel, threads, shared int) (int, error)

	// Clusters returns how many clusters of size such blocks run at the same time.
	Clusters(k Kernel, size, threads, shared int) (int, error)

	// Streams makes streams 0 … n-1 usable.
	Streams(n int) error
	NewEvent(timed bool) (Event, error)
	FreeEvent(e Event) error
	Record(e Event, stream int) error
	WaitFor(e Event, stream int) error // later work of the stream waits for e, if e was ever recorded

	// Sequence prepares calls so that Issue makes them all, in order, with as little of the host's
	// time as possible. When a call fails, Issue makes no later one, and at is the index of the
	// failed call.
	Sequence(calls []Call) (Sequence, error)
	Issue(s Sequence) (at int, err error)
	FreeSequence(s Sequence) error // freeing 0 does nothing

	// Await waits until e has passed. Elapsed returns the seconds between two timed events that
	// have passed.
	Await(e Event) error
	Elapsed(from, to Event) (float64, error)

	// BeginCapture starts to record a graph of all launches on stream 0 and on streams that wait
	// for it. EndCapture returns the graph.
	BeginCapture() error
	EndCapture() (Graph, error)
	Replay(g Graph) error // on stream 0
	FreeGraph(g Graph) error

	Networks
	Host

	// Throttled reports whether something holds the clock down right now.
	Throttled() bool
	// Power reads the energy counter. The error says why there is none.
	Power() (device.Power, error)
	// Survey describes the state of the GPU. A finding has a Remedy if something is wrong.
	Survey() []device.Finding

	Close() error
}

// Copies is a stream for copies and events alone. Streams need not make it usable.
const Copies = -1

// Handles that a Driver gives out.
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

// A Call is one piece of work for a stream: a launch, a product, a network, a sum over replicas, a
// graph or a copy. Without any of these, it records an event or waits for one.
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
	Outside bool // each replay of the graph records the event so that the host sees it
}

// A Copy goes from the host's memory to the GPU's, or back if Out: see CopyIn and CopyOut.
type Copy struct {
	Host []byte
	GPU  Pointer
	Out  bool
}

// IsEvent reports whether c records an event or waits for it.
func (c *Call) IsEvent() bool {
	return c.Launch == nil && c.Product == nil && c.Network == nil && c.Sum == nil && c.Graph == nil && c.Copy == nil
}

// String names the kind of work, for error messages.
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

// A Launch is a kernel with its geometry and its arguments of eight bytes each.
type Launch struct {
	Kernel      Kernel
	Name        string
	Grid, Block [3]int
	Shared      int  // bytes of dynamic shared memory
	Cooperative bool // all blocks run at the same time
	Cluster     int  // blocks of a cluster, side by side in the grid; 0: no clusters
	Urgent      bool // gets free multiprocessors before launches that are not urgent
	Early       bool // may begin before earlier work on its stream has ended; the kernel itself waits for that work
	Args        []uint64
	Tensors     []*Tensor        // behind the arguments
	Table       []uint64         // one more argument, a structure of these words; empty: no such argument
	Params      []unsafe.Pointer // one per argument and tensor, and the table
}

// A Tensor describes part of a matrix to the GPU's copy engine (TMA): columns of each sequence of a
// batch at each step. One copy moves one Box.
type Tensor struct {
	At      Pointer
	Element Element
	Sizes   [3]int // columns, batch, steps
	Strides [2]int // bytes from one sequence to the next, and from one step to the next
	Box     [3]int
	Turned  bool // swizzled: in shared memory, piece i (16 bytes) of the 128-byte row r lies at place i^r%8

	image [24]uint64
}

// Image is where a driver keeps the 128 bytes that describe t to kernels. Its address is a multiple
// of 64.
func (t *Tensor) Image() unsafe.Pointer {
	at := unsafe.Pointer(&t.image)
	return unsafe.Add(at, -uintptr(at)&63)
}

// A Product is C = op(A)·op(B), or C += op(A)·op(B), of row-major matrices. Sums are in single
// precision.
type Product struct {
	M, N, K        int
	A, B, C        Pointer
	LdA, LdB, LdC  int
	TransA, TransB bool
	Accumulate     bool
	Scale          Pointer // address of two single-precision factors: of op(A)·op(B), and of the old C in place of Accumulate; 0: none
	Operands       Element // of A and B
	Result         Element // of C
	TF32           bool    // round single-precision operands to TF32
}

// A Compiler turns CUDA C++ into an image that a Driver loads.
type Compiler interface {
	// Version is part of the cache key of compiled images.
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
