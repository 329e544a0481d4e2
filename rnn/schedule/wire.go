package schedule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// kinds are the types of operations in the order of their numbers on the wire.
func kinds() []Op {
	return []Op{
		Gemm{}, Pack{}, Map{}, MapChain{}, SumRows{}, Cell{}, CellBackward{}, Gather{}, Scatter{}, SoftmaxLoss{}, CTCLoss{}, Normalise{}, NormaliseBackward{}, Squares{}, Change{}, Update{}, AllReduce{},
		Persistent{}, PersistentBackward{}, Scan{}, ScanBackward{},
		Vendor{}, VendorBackward{}, Foreign{}, Pause{},
	}
}

// MarshalBinary writes s for another process of the same build: cells by name and matrices by
// number. It leaves out waits, which follow from the rest.
func (s *Schedule) MarshalBinary() ([]byte, error) {
	number := map[reflect.Type]int{}
	for i, op := range kinds() {
		number[reflect.TypeOf(op)] = i
	}
	e := encoder{}
	e.int(s.Streams)
	e.int(int(s.Precision))
	e.int(len(s.Matrices))
	for _, m := range s.Matrices {
		e.string(m.Name)
		e.int(m.Rows)
		e.int(m.Cols)
		e.bool(m.Packed)
		e.bool(m.Scratch)
	}
	op := func(op Op) {
		e.int(number[reflect.TypeOf(op)])
		e.value(reflect.ValueOf(op))
	}
	e.int(len(s.Prepare))
	for _, o := range s.Prepare {
		op(o)
	}
	e.int(len(s.Nodes))
	for _, n := range s.Nodes {
		e.int(n.Stream)
		op(n.Op)
	}
	return e.b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote, checks it as a Builder does and
// derives the waits.
func (s *Schedule) UnmarshalBinary(data []byte) error {
	d := decoder{b: data}
	b := NewBuilder(d.within(1, wireStreams))
	b.SetPrecision(Precision(d.within(0, len(Precisions())-1)))
	for range d.count() {
		m := b.Matrix(d.string(), d.within(1, wireRows), d.within(1, wireRows))
		m.Packed = d.bool()
		m.Scratch = d.bool()
		if d.err == nil && m.Elements() > wireElements {
			d.fail()
		}
	}
	d.matrices = b.s.Matrices
	types := kinds()
	op := func() Op {
		i := d.int()
		if d.err != nil || i < 0 || i >= len(types) {
			d.fail()
			return nil
		}
		v := reflect.New(reflect.TypeOf(types[i])).Elem()
		if d.value(v); d.err != nil {
			return nil
		}
		return v.Interface().(Op)
	}
	for range d.count() {
		if o := op(); o != nil {
			b.Prepare(o)
		}
	}
	for range d.count() {
		stream := d.within(0, b.Streams()-1)
		if o := op(); o != nil {
			b.Do(stream, o)
		}
	}
	if len(d.b) > 0 {
		d.fail()
	}
	if d.err != nil {
		return d.err
	}
	if err := b.checkWaitMemory(); err != nil {
		return err
	}
	out, err := b.Schedule()
	if err == nil {
		*s = *out
	}
	return err
}

// Bounds of numbers from the wire, beyond all that a device can have.
const (
	wireStreams  = 1 << 12
	wireRows     = math.MaxInt32
	wireElements = 1 << 40
	wireWaits    = 1 << 33 // bytes that deriving the waits may take
)

// checkWaitMemory declines a schedule whose waits would take too much memory to derive.
func (b *Builder) checkWaitMemory() error {
	if b.err != nil || b.s.Streams == 1 {
		return b.err
	}
	bytes := b.s.Clocks()
	for i, size := range bands(&b.s) {
		bytes += 24 * int64(b.s.Matrices[i].Rows/size)
	}
	if bytes > wireWaits {
		return fmt.Errorf("schedule: %d streams and these matrices take more than %d GiB to derive the waits of", b.s.Streams, wireWaits>>30)
	}
	return nil
}

var (
	viewType = reflect.TypeFor[View]()
	cellType = reflect.TypeFor[*cell.Cell]()
)

type encoder struct{ b []byte }

func (e *encoder) int(v int) { e.b = binary.AppendVarint(e.b, int64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.int(1)
	} else {
		e.int(0)
	}
}

func (e *encoder) string(s string) {
	e.int(len(s))
	e.b = append(e.b, s...)
}

// value writes a field of an operation.
func (e *encoder) value(v reflect.Value) {
	switch v.Type() {
	case viewType:
		w := v.Interface().(View)
		if w.Empty() {
			e.int(0)
			return
		}
		e.int(w.M.ID + 1)
		e.int(w.Row)
		e.int(w.Col)
		e.int(w.Rows)
		e.int(w.Cols)
		return
	case cellType:
		c := v.Interface().(*cell.Cell)
		e.string(c.Name)
		e.string(c.Text)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
	case reflect.Slice:
		e.int(v.Len())
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Bool:
		e.bool(v.Bool())
	case reflect.String:
		e.string(v.String())
	case reflect.Int, reflect.Int64:
		e.int(int(v.Int()))
	case reflect.Uint8:
		e.int(int(v.Uint()))
	case reflect.Float32:
		e.int(int(math.Float32bits(float32(v.Float()))))
	default:
		panic(fmt.Sprintf("schedule: no wire form of %v", v.Type()))
	}
}

var errWire = errors.New("schedule: the wire form is broken: are both processes of the same build?")

type decoder struct {
	b        []byte
	err      error
	matrices []*Matrix
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errWire
	}
}

func (d *decoder) int() int {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

// within reads a number from low to high.
func (d *decoder) within(low, high int) int {
	if v := d.int(); d.err == nil && v >= low && v <= high {
		return v
	}
	d.fail()
	return low
}

func (d *decoder) bool() bool { return d.within(0, 1) == 1 }

// count reads a number of things, each of which takes at least one byte.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > len(d.b) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) string() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// value reads a field of an operation.
func (d *decoder) value(v reflect.Value) {
	switch v.Type() {
	case viewType:
		id := d.int()
		if id == 0 || d.err != nil {
			return
		}
		w := View{Row: d.int(), Col: d.int(), Rows: d.int(), Cols: d.int()}
		if id < 0 || id > len(d.matrices) {
			d.fail()
			return
		}
		w.M = d.matrices[id-1]
		v.Set(reflect.ValueOf(w))
		return
	case cellType:
		name, text := d.string(), d.string()
		if text != "" && d.err == nil {
			whole, _, _ := strings.Cut(name, " ") // a part of a cell has the cell's name and more words
			if _, err := equations.Restore(whole, text); err != nil {
				d.fail()
				return
			}
		}
		every := cell.Every()
		i := slices.IndexFunc(every, func(c *cell.Cell) bool { return c.Name == name })
		if i < 0 {
			d.fail()
			return
		}
		v.Set(reflect.ValueOf(every[i]))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	case reflect.Slice:
		n := d.count()
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, min(n, 16))) // it grows as elements come
		for i := 0; i < n && d.err == nil; i++ {
			v.Grow(1)
			v.SetLen(i + 1)
			d.value(v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(d.bool())
	case reflect.String:
		v.SetString(d.string())
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(d.int()))
	case reflect.Uint8:
		v.SetUint(uint64(d.within(0, math.MaxUint8)))
	case reflect.Float32:
		v.SetFloat(float64(math.Float32frombits(uint32(d.within(0, math.MaxUint32)))))
	default:
		panic(fmt.Sprintf("schedule: no wire form of %v", v.Type()))
	}
}
