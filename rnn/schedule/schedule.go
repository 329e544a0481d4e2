// Package schedule describes device work as data.
//
// A schedule is a list of operations over named matrices. Its meaning is
// sequential: on any device, with any number of streams, the result is that of
// running the operations one by one in program order. Streams only say which
// operations may overlap. The waits between streams are derived from the
// rectangles that operations read and write, never written by hand.
//
// Techniques build schedules and devices run them. Neither knows the other, and
// this package knows neither problems nor hardware.
package schedule

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// ErrUnsupported reports that a technique or a device declines a piece of work.
// It is wrapped with the reason. Declining is not failing: a sweep records it.
var ErrUnsupported = errors.New("unsupported")

// ErrKnob is an ErrUnsupported for a knob's setting: with another setting the work could be done.
var ErrKnob = fmt.Errorf("%w", ErrUnsupported)

// A Matrix is a row-major float32 matrix in device memory.
type Matrix struct {
	Name       string
	Rows, Cols int
	ID         int // index in Schedule.Matrices

	// Packed says that a device may keep the elements in whatever order it reads fastest. Only Pack
	// writes the matrix, and only products read it, as their right operand; or it is what a Vendor
	// keeps.
	Packed bool

	// Scratch says that only operations touch the matrix. A device need not form it if it can do
	// without.
	Scratch bool
}

// Private reports whether only operations touch m, not the host.
func (m *Matrix) Private() bool { return m.Packed || m.Scratch }

// Elements is the number of values in m.
func (m *Matrix) Elements() int { return m.Rows * m.Cols }

// All views the whole matrix.
func (m *Matrix) All() View { return View{m, 0, 0, m.Rows, m.Cols} }

// Band views n whole rows from row.
func (m *Matrix) Band(row, n int) View { return View{m, row, 0, n, m.Cols} }

// A View is a rectangle of a matrix. The zero View has no matrix; it stands for an operand that an
// operation does without.
type View struct {
	M                    *Matrix
	Row, Col, Rows, Cols int
}

// Band narrows v to n rows from row.
func (v View) Band(row, n int) View { return View{v.M, v.Row + row, v.Col, n, v.Cols} }

// Columns narrows v to n columns from col.
func (v View) Columns(col, n int) View { return View{v.M, v.Row, v.Col + col, v.Rows, n} }

// Empty reports whether v is no matrix at all.
func (v View) Empty() bool { return v.M == nil }

// Bytes is the size of v.
func (v View) Bytes() int64 { return 4 * int64(v.Rows) * int64(v.Cols) }

func (v View) String() string {
	switch {
	case v.M == nil:
		return "-"
	case v.Col == 0 && v.Cols == v.M.Cols && v.Row == 0 && v.Rows == v.M.Rows:
		return v.M.Name
	case v.Col == 0 && v.Cols == v.M.Cols:
		return fmt.Sprintf("%s[%d:%d]", v.M.Name, v.Row, v.Row+v.Rows)
	}
	return fmt.Sprintf("%s[%d:%d,%d:%d]", v.M.Name, v.Row, v.Row+v.Rows, v.Col, v.Col+v.Cols)
}

// inside reports whether v is a non-empty rectangle within its matrix.
func (v View) inside() bool {
	return v.Row >= 0 && v.Col >= 0 && v.Rows > 0 && v.Cols > 0 &&
		v.Rows <= v.M.Rows-v.Row && v.Cols <= v.M.Cols-v.Col
}

// Overlaps reports whether v and w share an element.
func (v View) Overlaps(w View) bool {
	return v.M == w.M &&
		v.Row < w.Row+w.Rows && w.Row < v.Row+v.Rows &&
		v.Col < w.Col+w.Cols && w.Col < v.Col+v.Cols
}

func (v View) covers(w View) bool {
	return v.M == w.M && v.Row <= w.Row && v.Col <= w.Col &&
		v.Row+v.Rows >= w.Row+w.Rows && v.Col+v.Cols >= w.Col+w.Cols
}

// A Node is an operation with its place in the schedule.
type Node struct {
	Op     Op
	Stream int
	Wait   []int // nodes of other streams that must finish first
}

// A Schedule is a finished, immutable program.
type Schedule struct {
	Matrices []*Matrix
	Prepare  []Op // run once, in order, after the weights are written
	Nodes    []Node
	Streams  int

	Precision Precision // of all products

	operations int64 // bytes that these take; equal ones count once
}

// Size is the number of bytes of host memory that s itself takes: nodes,
// operations and waits.
func (s *Schedule) Size() int64 {
	n := s.operations + int64(len(s.Nodes))*int64(unsafe.Sizeof(Node{}))
	for _, node := range s.Nodes {
		n += int64(len(node.Wait)) * int64(unsafe.Sizeof(int(0)))
	}
	return n
}

// Operations yields every operation, those of Prepare first.
func (s *Schedule) Operations() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for _, op := range s.Prepare {
			if !yield(op) {
				return
			}
		}
		for _, n := range s.Nodes {
			if !yield(n.Op) {
				return
			}
		}
	}
}

// FLOPs counts the operations that one run executes.
func (s *Schedule) FLOPs() int64 {
	var n int64
	for _, node := range s.Nodes {
		n += node.Op.FLOPs()
	}
	return n
}

// Traffic counts the bytes that the operations of one run read and write, if nothing stayed in a
// cache from one operation to the next.
func (s *Schedule) Traffic() int64 {
	var n int64
	for _, node := range s.Nodes {
		n += Bytes(node.Op)
	}
	return n
}

// Memory is the number of bytes of all matrices, packing overhead excepted.
func (s *Schedule) Memory() int64 {
	var n int64
	for _, m := range s.Matrices {
		n += m.All().Bytes()
	}
	return n
}

// MaxNodes bounds the operations of a schedule, which take some 100 to 400 bytes each.
const MaxNodes = 1 << 24

// A Builder collects operations in program order.
type Builder struct {
	s   Schedule
	err error

	// Most operations of a step equal those of the step before, so equal ones are kept once. recent
	// has the latest; it is cleared from time to time.
	recent map[Op]Op

	cuts         []int  // where sections begin; see Cut
	first, among int    // see Within
	mark         string // appended to the names of matrices
}

// remembered is how many operations a Builder remembers.
const remembered = 1 << 10

// NewBuilder returns a builder for a schedule of the given number of streams.
func NewBuilder(streams int) *Builder {
	return &Builder{s: Schedule{Streams: streams}}
}

// SetPrecision sets the arithmetic of all products; without it they are FP32.
func (b *Builder) SetPrecision(p Precision) { b.s.Precision = p }

// Streams is the number of streams that operations may use.
func (b *Builder) Streams() int {
	if b.among > 0 {
		return b.among
	}
	return b.s.Streams
}

// Matrix adds a matrix.
func (b *Builder) Matrix(name string, rows, cols int) *Matrix {
	m := &Matrix{Name: name + b.mark, Rows: rows, Cols: cols, ID: len(b.s.Matrices)}
	b.s.Matrices = append(b.s.Matrices, m)
	return m
}

// Packed adds a matrix for Pack to write and products to read.
func (b *Builder) Packed(name string, rows, cols int) *Matrix {
	m := b.Matrix(name, rows, cols)
	m.Packed = true
	return m
}

// Scratch adds a matrix that only operations touch.
func (b *Builder) Scratch(name string, rows, cols int) *Matrix {
	m := b.Matrix(name, rows, cols)
	m.Scratch = true
	return m
}

// Remove removes a matrix that no operation of a run touches, and the operations that prepare it alone.
func (b *Builder) Remove(m *Matrix) {
	b.s.Prepare = slices.DeleteFunc(b.s.Prepare, func(op Op) bool {
		return !slices.ContainsFunc(op.Writes(), func(v View) bool { return v.M != m })
	})
	b.s.Matrices = slices.Delete(b.s.Matrices, m.ID, m.ID+1)
	for i, m := range b.s.Matrices {
		m.ID = i
	}
}

// Room declines work of n operations or more if they are too many, before they are made. Otherwise
// Do declines the first that is too many.
func (b *Builder) Room(n int) error {
	if n > MaxNodes {
		return fmt.Errorf("%w: it takes more than %d operations, the limit of a schedule", ErrUnsupported, MaxNodes)
	}
	return nil
}

// Expect declines work of n operations if they are too many, and else allocates room for them.
func (b *Builder) Expect(n int) error {
	if err := b.Room(n); err != nil {
		return err
	}
	b.s.Nodes = slices.Grow(b.s.Nodes, max(0, n-len(b.s.Nodes)))
	return nil
}

// Do appends op to stream, counted modulo the number of streams. The first
// error sticks and is returned by Schedule.
func (b *Builder) Do(stream int, op Op) {
	if op = b.deduplicate(op); b.admits(op, len(b.s.Nodes)) {
		b.s.Nodes = append(b.s.Nodes, Node{Op: op, Stream: b.first + stream%b.Streams()})
	}
}

// Prepare appends op to the work that depends on the weights alone.
func (b *Builder) Prepare(op Op) {
	if op = b.deduplicate(op); b.admits(op, len(b.s.Prepare)) {
		b.s.Prepare = append(b.s.Prepare, op)
	}
}

// PrepareInRuns moves prepared operations to the start of each run, since a run changes the weights.
func (b *Builder) PrepareInRuns() {
	var first []Node
	for _, op := range b.s.Prepare {
		first = append(first, Node{Op: op})
	}
	b.s.Nodes, b.s.Prepare = append(first, b.s.Nodes...), nil
}

// ScaleLosses multiplies the gradients of all losses, since 16 bits cannot hold small ones.
func (b *Builder) ScaleLosses(by float32) {
	for i, n := range b.s.Nodes {
		switch loss := n.Op.(type) {
		case SoftmaxLoss:
			loss.Scale *= by
			b.s.Nodes[i].Op = loss
		case CTCLoss:
			loss.Scale *= by
			b.s.Nodes[i].Op = loss
		}
	}
}

// deduplicate checks op and counts its bytes. If an equal operation came a short while ago, it
// returns that one instead.
func (b *Builder) deduplicate(op Op) Op {
	shared := false
	switch op.(type) {
	case Gemm, Map, SumRows:
		shared = true
	}
	if shared {
		if same, ok := b.recent[op]; ok {
			return same
		}
	}
	if b.check(op); b.err != nil {
		return op
	}
	b.s.operations += size(op)
	if shared {
		if b.recent == nil {
			b.recent = map[Op]Op{}
		} else if len(b.recent) == remembered {
			clear(b.recent)
		}
		b.recent[op] = op
	}
	return op
}

// admits reports whether an operation may follow n others.
func (b *Builder) admits(op Op, n int) bool {
	if b.err == nil {
		b.err = b.Room(n + 1)
	}
	return b.err == nil
}

func (b *Builder) check(op Op) {
	if b.err != nil {
		return
	}
	if b.err = complete(op); b.err != nil {
		return
	}
	if b.err = op.check(); b.err != nil {
		return
	}
	for v := range Accesses(op) {
		switch {
		case !v.inside():
			b.err = fmt.Errorf("schedule: %v: view %v is not inside a matrix of %d×%d", op, v, v.M.Rows, v.M.Cols)
			return
		case v.M.Packed && !packs(op, v):
			b.err = fmt.Errorf("schedule: %v: %v is packed: only Pack may write it, and only the right side of a product may read all of it", op, v)
			return
		}
	}
}

// packs reports whether op may touch v, a view of a packed matrix.
func packs(op Op, v View) bool {
	whole := v == v.M.All()
	switch op := op.(type) {
	case Pack:
		return whole && v == op.Dst
	case Gemm:
		return whole && v == op.B && !op.TransB && op.A.M != v.M && op.C.M != v.M
	case Persistent:
		return whole && slices.Contains(op.R, v)
	case PersistentBackward:
		return whole && v == op.R
	case Vendor:
		return whole && v == op.Kept
	case VendorBackward:
		return whole && v == op.Kept
	}
	return false
}

// Schedule derives the waits and returns the finished schedule.
func (b *Builder) Schedule() (*Schedule, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.recent = nil
	s := b.s
	derive(&s)
	return &s, nil
}
