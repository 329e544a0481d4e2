package pickle

import (
	"math"
	"unicode/utf8"
)

// stop is the opcode that ends a pickle.
const stop = '.'

// What values take in memory, in bytes, roughly.
const (
	slotBytes   = 48  // of a stack, a tuple, a list or half a pair, grown by doubling
	objectBytes = 128 // Object
	memoBytes   = 64  // an entry of the memo
)

// A machine is the stack machine of one pickle. After an error its values mean nothing.
type machine struct {
	*Reader
	stack      []any
	marks      []int // lengths of the stack at marks
	memo       map[int64]any
	persistent []any
}

// operations are those of opcodes, as pickletools of Python describes them; nil: not read.
var operations = [256]func(*machine){
	'(': func(m *machine) { m.take(slotBytes); m.marks = append(m.marks, len(m.stack)) },
	'0': func(m *machine) { m.pop() },
	'1': func(m *machine) { m.above() },
	'2': func(m *machine) { m.push(m.top()) },

	'N':  func(m *machine) { m.push(nil) },
	0x88: func(m *machine) { m.push(true) },
	0x89: func(m *machine) { m.push(false) },
	'J':  func(m *machine) { m.push(int64(int32(m.uint(4)))) },
	'K':  func(m *machine) { m.push(int64(m.uint(1))) },
	'M':  func(m *machine) { m.push(int64(m.uint(2))) },
	0x8a: func(m *machine) { m.push(integer(m.text(m.uint(1)))) },
	0x8b: func(m *machine) { m.push(integer(m.text(m.uint(4)))) },
	'G':  func(m *machine) { m.push(m.float()) },

	'U':  func(m *machine) { m.push(m.text(m.uint(1))) },
	'T':  func(m *machine) { m.push(m.text(m.uint(4))) },
	0x8c: func(m *machine) { m.push(m.unicode(1)) },
	'X':  func(m *machine) { m.push(m.unicode(4)) },
	0x8d: func(m *machine) { m.push(m.unicode(8)) },
	'C':  func(m *machine) { m.push(Bytes(m.text(m.uint(1)))) },
	'B':  func(m *machine) { m.push(Bytes(m.text(m.uint(4)))) },
	0x8e: func(m *machine) { m.push(Bytes(m.text(m.uint(8)))) },
	0x96: func(m *machine) { m.push(Bytes(m.text(m.uint(8)))) },

	')':  func(m *machine) { m.push(Tuple{}) },
	't':  func(m *machine) { m.tuple(m.above()) },
	0x85: func(m *machine) { m.tuple(m.last(1)) },
	0x86: func(m *machine) { m.tuple(m.last(2)) },
	0x87: func(m *machine) { m.tuple(m.last(3)) },

	']':  func(m *machine) { m.object("list", nil) },
	'}':  func(m *machine) { m.object("dict", nil) },
	0x8f: func(m *machine) { m.object("set", nil) },
	0x91: func(m *machine) { m.object("frozenset", m.above()) },
	'a':  func(m *machine) { m.items(m.last(1)) },
	'e':  func(m *machine) { m.items(m.above()) },
	0x90: func(m *machine) { m.items(m.above()) },
	's':  func(m *machine) { m.pairs(m.last(2)) },
	'u':  func(m *machine) { m.pairs(m.above()) },

	'c':  func(m *machine) { module := m.line(); m.push(Global{module, m.line()}) },
	0x93: (*machine).global,
	'R':  func(m *machine) { args := m.pop(); m.made(m.pop(), args) },
	0x81: func(m *machine) { args := m.pop(); m.made(m.pop(), args) },
	0x92: func(m *machine) { keywords, args := m.pop(), m.pop(); m.made(m.pop(), args); m.state(keywords) },
	'b':  func(m *machine) { m.state(m.pop()) },
	'Q':  (*machine).persist,

	'q':  func(m *machine) { m.put(int64(m.uint(1))) },
	'r':  func(m *machine) { m.put(int64(m.uint(4))) },
	0x94: func(m *machine) { m.put(int64(len(m.memo))) },
	'h':  func(m *machine) { m.get(int64(m.uint(1))) },
	'j':  func(m *machine) { m.get(int64(m.uint(4))) },

	0x80: func(m *machine) {
		if version := m.byte(); version > 5 {
			m.fail("it is of protocol %d, but 5 is the last that is known", version)
		}
	},
	0x95: func(m *machine) { m.uint(8) }, // the length of a frame, which only helps to read ahead
}

func (m *machine) push(v any) {
	if m.take(slotBytes); m.err == nil {
		m.stack = append(m.stack, v)
	}
}

// last removes and returns the last n values that are above all marks.
func (m *machine) last(n int) []any {
	floor := 0
	if len(m.marks) > 0 {
		floor = m.marks[len(m.marks)-1]
	}
	if len(m.stack)-n < floor {
		m.fail("byte %d takes a value that is not there", m.at-1)
	}
	if m.err != nil {
		return make([]any, n)
	}
	values := m.stack[len(m.stack)-n:]
	m.stack = m.stack[:len(m.stack)-n]
	return values
}

func (m *machine) pop() any { return m.last(1)[0] }

// top returns the last value, and leaves it there.
func (m *machine) top() any {
	v := m.pop()
	if m.err == nil {
		m.stack = append(m.stack, v)
	}
	return v
}

// above removes the last mark, and the values above it, which it returns.
func (m *machine) above() []any {
	if len(m.marks) == 0 {
		m.fail("byte %d needs a mark that is not there", m.at-1)
		return nil
	}
	values := m.last(len(m.stack) - m.marks[len(m.marks)-1])
	m.marks = m.marks[:len(m.marks)-1]
	return values
}

func (m *machine) tuple(values []any) {
	m.take(slotBytes * len(values))
	if m.err == nil {
		m.push(append(Tuple{}, values...))
	}
}

// object pushes an object of one of Python's own classes.
func (m *machine) object(name string, items []any) {
	m.take(objectBytes + slotBytes*len(items))
	if m.err == nil {
		m.push(&Object{Class: Global{"builtins", name}, Items: append([]any(nil), items...)})
	}
}

// made pushes what class would make of args.
func (m *machine) made(class, args any) {
	tuple, ok := args.(Tuple)
	if !ok {
		m.fail("byte %d calls something without a tuple", m.at-1)
	}
	m.take(objectBytes)
	m.push(&Object{Class: class, Args: tuple})
}

// holder returns the last value, which must be an Object.
func (m *machine) holder() *Object {
	o, ok := m.top().(*Object)
	if !ok {
		m.fail("byte %d changes what is no object", m.at-1)
		return &Object{}
	}
	return o
}

func (m *machine) items(values []any) {
	m.take(slotBytes * len(values))
	o := m.holder()
	if m.err == nil {
		o.Items = append(o.Items, values...)
	}
}

func (m *machine) pairs(values []any) {
	if len(values)%2 != 0 {
		m.fail("byte %d has a key without a value", m.at-1)
	}
	m.take(slotBytes * len(values))
	o := m.holder()
	for i := 0; i < len(values) && m.err == nil; i += 2 {
		o.Pairs = append(o.Pairs, Pair{values[i], values[i+1]})
	}
}

// state sets the attributes of an object.
func (m *machine) state(v any) { m.holder().State = v }

// global pushes a Global of two strings.
func (m *machine) global() {
	name, ok := m.pop().(string)
	module, and := m.pop().(string)
	if !ok || !and {
		m.fail("byte %d names something without a string", m.at-1)
	}
	m.push(Global{module, name})
}

func (m *machine) persist() {
	id := m.pop()
	m.take(slotBytes)
	m.persistent = append(m.persistent, id)
	m.push(Persistent{id})
}

func (m *machine) put(at int64) {
	if m.take(memoBytes); m.err == nil {
		m.memo[at] = m.top()
	}
}

func (m *machine) get(at int64) {
	v, ok := m.memo[at]
	if !ok {
		m.fail("byte %d refers to value %d, which is not there", m.at-1, at)
	}
	m.push(v)
}

// integer reads a little-endian number in two's complement.
func integer(text string) any {
	if len(text) > 8 {
		return Long(text)
	}
	var n uint64
	for i := range len(text) {
		n |= uint64(text[i]) << (8 * i)
	}
	unused := 64 - 8*len(text)
	return int64(n<<unused) >> unused
}

// float reads a big-endian number.
func (m *machine) float() float64 {
	var n uint64
	for range 8 {
		n = n<<8 | uint64(m.byte())
	}
	return math.Float64frombits(n)
}

// unicode reads a text, which a number of so many bytes precedes. Python writes half a pair of
// surrogates as three bytes, which no other text has: such a text stays as it is.
func (m *machine) unicode(bytes int) any {
	text := m.text(m.uint(bytes))
	if !utf8.ValidString(text) {
		return Bytes(text)
	}
	return text
}
