package launch

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Memory says where a program's matrices lie, and how they are stored.
type Memory struct {
	Base         driver.Pointer
	Elements     []driver.Element // per matrix
	Offsets      []int64          // per matrix, from base
	StatusOffset int64            // offset of the status word, in which kernels report errors
}

// A Target is what launches are built for: a program's memory on a GPU, and the settings that
// kernels depend on.
type Target struct {
	*Memory
	Properties driver.Properties
	Precision  schedule.Precision
	Knobs      knob.Params
	sources    map[string]*codegen.Source
}

// NewTarget returns the target for a program whose memory is m.
func NewTarget(m *Memory, precision schedule.Precision, k knob.Params, p driver.Properties) *Target {
	return &Target{Memory: m, Properties: p, Precision: precision, Knobs: k, sources: map[string]*codegen.Source{}}
}

// Source returns the text of a kernel. write runs once for all operations with the same words: the
// kernel's name and all else that its text depends on.
func (t *Target) Source(write func() codegen.Source, words ...any) *codegen.Source {
	key := fmt.Sprint(words...)
	s, ok := t.sources[key]
	if !ok {
		text := write()
		s = &text
		t.sources[key] = s
	}
	return s
}

// File returns kernel name, read by files, with defines ahead of it: pairs of a word and its
// meaning.
func (t *Target) File(files func(name string, defines ...any) codegen.Source, name string, defines ...any) *codegen.Source {
	return t.Source(func() codegen.Source { return files(name, defines...) }, append([]any{name, " "}, defines...)...)
}

// At returns the address of a view's first element.
func (t *Target) At(v schedule.View) driver.Pointer {
	size := t.Elements[v.M.ID].Bytes()
	return t.Base + driver.Pointer(t.Offsets[v.M.ID]+int64(v.Row*v.M.Cols+v.Col)*int64(size))
}

// Element says how a view's elements are stored.
func (t *Target) Element(v schedule.View) driver.Element {
	if v.Empty() {
		return driver.Single
	}
	return t.Elements[v.M.ID]
}

// Status returns the address of the status word.
func (t *Target) Status() uint64 { return uint64(t.Base) + uint64(t.StatusOffset) }

// Stride returns the elements from one row to the next; 0 if one row serves for every row.
func (t *Target) Stride(v schedule.View) uint64 {
	if v.Rows == 1 {
		return 0
	}
	return uint64(v.M.Cols)
}

// Groups returns the matrix arguments of a kernel that runs p. vector finds the view of a vector of
// p.
func (t *Target) Groups(p cell.Program, vector func(cell.Ref) schedule.View) []codegen.Group {
	reads, writes := p.Vectors()
	var out []codegen.Group
	for i, r := range slices.Concat(reads, writes) {
		name := codegen.GroupName(r)
		k := slices.IndexFunc(out, func(g codegen.Group) bool { return g.Name == name })
		if k < 0 {
			first := r
			first.Index -= codegen.Offset(r)
			v := vector(first)
			out = append(out, codegen.Group{Name: name, Element: t.Element(v), View: v})
			k = len(out) - 1
		}
		out[k].Written = out[k].Written || i >= len(reads)
	}
	return out
}

// Arguments returns the arguments of groups: for each, its address and the elements from row to
// row.
func (t *Target) Arguments(groups []codegen.Group) []uint64 {
	var args []uint64
	for _, g := range groups {
		args = append(args, uint64(t.At(g.View)), uint64(g.View.M.Cols))
	}
	return args
}

// Alignment of matrices, in bytes: that of fresh allocations.
const Alignment = 256

// MaxStreams is how many streams of the GPU are in use at most. Further streams of a schedule share
// them.
const MaxStreams = 32
