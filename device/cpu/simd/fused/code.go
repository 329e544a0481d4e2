package fused

import (
	"math"
	"slices"
	"sync"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// The sizes of an interpretation's memory, which the generator knows, too: operands of a program,
// vectors, and floats for temporaries.
const (
	tableLen   = 256
	maxVectors = 96
	tempFloats = 4096
	tileUnits  = 256 // units of a temporary, at most: more would not fit the nearest cache with the vectors
	blockUnits = 64  // units of the largest block: a tile is a multiple of it
	blocks     = 3
)

// A machine is the interpreter of a level in assembly, with its handlers.
type machine struct {
	run      func(c *Code, v *[]float32, size, n, rows, steps int)
	handlers []uintptr // for each of catalog.Handlers(), one for each block
}

var machines = sync.OnceValue(func() map[simd.Level]*machine {
	all := map[simd.Level]*machine{}
	for l, a := range interpreters {
		m := &machine{run: a.run, handlers: make([]uintptr, blocks*len(catalog.Handlers()))}
		a.handlers(m.handlers)
		all[l] = m
	}
	return all
})

// A call is a handler with the numbers of its operands.
type call struct {
	handler catalog.Handler
	at      []int
}

// A translation turns a program into calls of handlers. A value that only the next call reads stays
// in the accumulator.
type translation struct {
	program cell.Program
	place   map[cell.Ref]int
	vectors int
	temps   int
	acc     []cell.Ref // operands whose value is in the accumulator; all but the first are in memory, too
	calls   []call
}

// code returns p as code, or nil if p is too large for it. If there are products, it first computes
// so many recurrent ones, into temporaries. Then the state and the weights follow the vectors.
func (m *machine) code(p cell.Program, vectors []cell.Ref, products int) *Code {
	t := &translation{program: p, place: map[cell.Ref]int{}, vectors: len(vectors), temps: max(1, p.Temps()+products)}
	if products > 0 {
		t.vectors += 1 + products
	}
	tile := min(tileUnits, tempFloats/t.temps/blockUnits*blockUnits)
	copies := t.vectors + t.temps
	if t.vectors > maxVectors || copies+t.vectors > tableLen || tile == 0 {
		return nil
	}
	for i, r := range vectors {
		t.place[r] = i
	}
	for i := range products {
		r := cell.Ref{Kind: cell.R, Index: i}
		t.place[r] = t.vectors + p.Temps() + i
		t.calls = append(t.calls, call{special(catalog.Product), []int{len(vectors), len(vectors) + 1 + i, t.place[r]}})
	}
	for i := 0; i < len(p); {
		i += t.translate(i)
	}
	reads, writes := p.Vectors()
	var last []call
	for _, r := range reads {
		if t.place[r] < t.vectors {
			last = append(last, call{special(catalog.LoadLast), []int{t.place[r], copies + t.place[r]}})
		}
	}
	for _, c := range t.calls {
		at := slices.Clone(c.at)
		for i := range at {
			if at[i] < t.vectors && c.handler.Name != catalog.Product && c.handler.Form != catalog.Immediate {
				at[i] += copies
			}
		}
		last = append(last, call{c.handler, at})
	}
	for _, r := range writes {
		last = append(last, call{special(catalog.StoreLast), []int{t.place[r], copies + t.place[r]}})
	}
	return &Code{Four: m.encode(t.calls, 0), Two: m.encode(t.calls, 1), One: m.encode(t.calls, 2), Last: m.encode(last, 2),
		Vectors: t.vectors, Temps: t.temps, Tile: tile}
}

// encode returns calls as code for one block.
func (m *machine) encode(calls []call, block int) []uintptr {
	var code []uintptr
	all := catalog.Handlers()
	for _, c := range append(slices.Clip(calls), call{handler: special(catalog.End)}) {
		code = append(code, m.handlers[blocks*slices.Index(all, c.handler)+block])
		for _, at := range c.at {
			code = append(code, uintptr(at))
		}
	}
	return code
}

// special returns the handler of a name.
func special(name string) catalog.Handler {
	all := catalog.Handlers()
	return all[slices.IndexFunc(all, func(h catalog.Handler) bool { return h.Name == name })]
}

// at returns the number of an operand.
func (t *translation) at(r cell.Ref) int {
	if r.Kind == cell.Temp {
		return t.vectors + r.Index
	}
	return t.place[r]
}

func (t *translation) emit(h catalog.Handler, operands ...cell.Ref) {
	c := call{handler: h}
	for _, r := range operands {
		c.at = append(c.at, t.at(r))
	}
	t.calls = append(t.calls, c)
}

// translate emits the calls of the i-th instruction, or of a group of three that begins there. It
// returns the number of instructions.
func (t *translation) translate(i int) int {
	in := t.program[i]
	if name := t.group(i); name != "" {
		next := t.program[i+1]
		t.emit(special(name), in.A, in.B, next.A, next.B)
		t.result(i + 2)
		return 3
	}
	held := func(r cell.Ref) bool { return slices.Contains(t.acc, r) }
	h := catalog.Handler{Name: in.Op.String(), Op: in.Op}
	switch in.Op.Operands() {
	case 0:
		if h.Form = catalog.NoOperand; in.Op == cell.Const {
			h.Form = catalog.Immediate
			t.calls = append(t.calls, call{h, []int{int(math.Float32bits(in.Value))}})
			break
		}
		t.emit(h)
	case 1:
		if h.Form = catalog.FromMem; in.Op != cell.Copy && !held(in.A) && slices.Contains(catalog.Handlers(), h) {
			t.emit(h, in.A)
			break
		}
		if !held(in.A) {
			t.emit(special(catalog.Load), in.A)
		}
		if in.Op == cell.Copy {
			t.copied(i, held(in.A))
			return 1
		}
		h.Form = catalog.Acc
		t.emit(h)
	default:
		a, b := in.A, in.B
		second := a != b && held(b) && (!held(a) || b == t.acc[0]) // of two, the first may not be in memory
		if catalog.Commutes(in.Op) && second {
			a, b, second = b, a, false
		}
		switch {
		case second:
			h.Form = catalog.MemAcc
			t.emit(h, a)
		case held(a) && a != b:
			h.Form = catalog.AccMem
			t.emit(h, b)
		default:
			h.Form = catalog.MemMem
			t.emit(h, a, b)
		}
	}
	t.result(i)
	return 1
}

// copied ends a copy: the accumulator holds what it held, if it held that, and the result.
func (t *translation) copied(i int, held bool) {
	acc := t.acc
	t.result(i)
	if held {
		t.acc = append(t.acc, slices.DeleteFunc(acc, func(r cell.Ref) bool { return r == t.program[i].Out })...)
	}
}

// result ends the i-th instruction: the accumulator holds its result, which is stored if it is a
// vector or if others than the next instruction read it.
func (t *translation) result(i int) {
	out := t.program[i].Out
	t.acc = []cell.Ref{out}
	if out.Kind == cell.Temp && t.passed(i) {
		return
	}
	last := &t.calls[len(t.calls)-1]
	h := last.handler
	if h.Stores = true; !last.handler.Stores && slices.Contains(catalog.Handlers(), h) {
		last.handler, last.at = h, append(last.at, t.at(out))
		return
	}
	t.emit(special(catalog.Store), out)
}

// passed reports whether nothing but the next instruction reads the result of the i-th, and finds it
// in the accumulator.
func (t *translation) passed(i int) bool {
	out := t.program[i].Out
	for j := i + 1; j < len(t.program); j++ {
		in := t.program[j]
		if slices.Contains(in.Args(), out) {
			twice := in.Op.Operands() == 2 && in.A == in.B
			return j == i+1 && !twice && t.group(j) == "" && t.dead(j, out)
		}
		if in.Out == out {
			return true
		}
	}
	return true
}

// dead reports whether no instruction after the i-th reads the value that r has before it.
func (t *translation) dead(i int, r cell.Ref) bool {
	if t.program[i].Out == r {
		return true
	}
	for _, in := range t.program[i+1:] {
		if slices.Contains(in.Args(), r) {
			return false
		}
		if in.Out == r {
			return true
		}
	}
	return true
}

// group returns the name of the handler for the three instructions from the i-th on; "": there is
// none. They combine four operands in memory, and nothing else reads the two values between.
func (t *translation) group(i int) string {
	if i+2 >= len(t.program) {
		return ""
	}
	first, second, third := t.program[i], t.program[i+1], t.program[i+2]
	name := map[cell.Op]string{cell.Add: catalog.SumOfFour, cell.Mul: catalog.TwoTerms}[first.Op]
	x, y := first.Out, second.Out
	switch {
	case name == "" || second.Op != first.Op || third.Op != cell.Add:
	case x == y || x.Kind != cell.Temp || y.Kind != cell.Temp || slices.Contains(second.Args(), x):
	case third.A != x || third.B != y: // the order of a sum of two does not matter, but keep it simple
	case t.dead(i+2, x) && t.dead(i+2, y):
		return name
	}
	return ""
}
