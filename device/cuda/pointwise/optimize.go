package pointwise

import (
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// One launch of an optimiser serves many parameters. Each block finds its parameter in a table,
// which the launch carries as its last argument.

// mostSegments is how many parameters a launch serves at most. Their table fits the 4 KiB of
// arguments that every GPU allows.
const mostSegments = 64

// A table has a few words for each of n matrices of a launch, and counts the launch's blocks.
type table struct {
	words     []uint64
	n, blocks int
}

// add appends the words of a matrix with so many blocks, and the number of its first block.
func (a *table) add(blocks int, words ...uint64) {
	a.words = append(append(a.words, words...), uint64(a.blocks))
	a.n++
	a.blocks += blocks
}

// launch launches a kernel whose last argument is the table, padded to mostSegments entries.
func (a *table) launch(t *launch.Target, s *codegen.Source, args ...uint64) launch.Command {
	l := launch.New(s, [3]int{a.blocks, 1, 1}, [3]int{launch.BlockSize, 1, 1}, append([]uint64{uint64(a.n)}, args...)...)
	l.Launch.Table = append(a.words, make([]uint64, (mostSegments-a.n)*len(a.words)/a.n)...)
	l.Launch.Pack()
	l.Early = t.Properties.Capability >= 90
	return l
}

// Squares sums the squares of matrices, one block per band of rows, in as few launches as possible.
func Squares(t *launch.Target, ops []schedule.Squares) (list []launch.Command) {
	type form struct{ from, out, index driver.Element }
	for form, ops := range alike(ops, func(op schedule.Squares) form {
		return form{t.Element(op.A), t.Element(op.Out), t.Element(op.Rows)}
	}) {
		for len(ops) > 0 {
			var all table
			width := 4
			for _, op := range ops[:min(len(ops), mostSegments)] {
				if !quads(t, op.A) {
					width = 1
				}
				named, index, step := 0, uint64(0), 0
				if !op.Rows.Empty() {
					named, index, step = op.Rows.Rows, uint64(t.At(op.Rows)), op.Rows.M.Cols
				}
				all.add(op.Out.Cols, uint64(t.At(op.A)), uint64(t.At(op.Out)), index,
					pair(op.A.Rows, op.A.Cols), pair(op.A.M.Cols, op.Out.Cols), pair(named, step))
			}
			ops = ops[all.n:]
			list = append(list, all.launch(t, t.File(file, "squares", "SEGMENTS", mostSegments, "V", width, "FROM", form.from, "OUT", form.out, "INDEX", form.index)))
		}
	}
	return list
}

// quads reports whether each row of v begins at an address from which four elements can be read at
// once.
func quads(t *launch.Target, v schedule.View) bool {
	return int(t.At(v))%(4*t.Element(v).Bytes()) == 0 && (v.Rows == 1 || v.M.Cols%4 == 0)
}

// pair packs two ints into one word.
func pair(a, b int) uint64 { return uint64(uint32(a)) | uint64(b)<<32 }

// alike yields ops in groups of the same form, ordered by the first of each group.
func alike[O any, F comparable](ops []O, of func(O) F) func(yield func(F, []O) bool) {
	groups := map[F][]O{}
	var order []F
	for _, op := range ops {
		f := of(op)
		if groups[f] == nil {
			order = append(order, f)
		}
		groups[f] = append(groups[f], op)
	}
	return func(yield func(F, []O) bool) {
		for _, f := range order {
			if !yield(f, groups[f]) {
				return
			}
		}
	}
}

// An updateForm is what updates must have in common to share a launch.
type updateForm struct {
	moments, copies                  int
	param, copy, grad, first, second driver.Element
	rates, squares                   schedule.View
	beta1, beta2, epsilon            float32
	nesterov                         bool
	index                            driver.Element
	rows                             schedule.View // if only these rows change; else empty
}

// Largest says where updates keep the largest values of parameters. At returns the address of a
// parameter's absmax cache, which has Parts parts; 0: not kept. Scales is the kernel text for such
// caches.
type Largest struct {
	At     func(schedule.View) driver.Pointer
	Parts  int
	Scales string
}

// KeepsLargest reports whether op can keep its parameter's largest value.
func KeepsLargest(op schedule.Update) bool {
	return whole(op) && (op.Rows.Empty() || !op.Alone())
}

// Updates changes parameters by their gradients, in as few launches as possible.
func Updates(t *launch.Target, ops []schedule.Update, largest Largest) (list []launch.Command) {
	for form, ops := range alike(ops, func(op schedule.Update) updateForm { return newUpdateForm(t, op) }) {
		if !form.rows.Empty() {
			for _, op := range ops {
				list = append(list, updateRows(t, form, op))
			}
			continue
		}
		list = append(list, updateAll(t, form, ops, largest)...)
	}
	return list
}

func newUpdateForm(t *launch.Target, op schedule.Update) updateForm {
	f := updateForm{
		moments: len(op.Moment), param: t.Element(op.Param), copy: t.Element(op.Copy), grad: t.Element(op.Grad),
		first: driver.Single, second: driver.Single, rates: op.Rates, squares: op.Squares, beta1: op.Beta1, beta2: op.Beta2, epsilon: op.Epsilon,
		nesterov: op.Nesterov,
	}
	if !op.Copy.Empty() {
		f.copies = 1
	}
	if len(op.Moment) > 0 {
		f.first = t.Element(op.Moment[0])
	}
	if len(op.Moment) > 1 {
		f.second = t.Element(op.Moment[1])
	}
	if op.Alone() {
		f.rows, f.index = op.Rows, t.Element(op.Rows)
	}
	return f
}

// scale returns the arguments from which kernels compute the factor of all gradients.
func (f *updateForm) scale(t *launch.Target) []uint64 {
	if f.squares.Empty() { // not touched
		return []uint64{uint64(t.At(f.rates)), uint64(t.At(f.rates)), 0}
	}
	return []uint64{uint64(t.At(f.rates)), uint64(t.At(f.squares)), uint64(f.squares.Cols)}
}

// rule returns a kernel that begins with the function for that factor, after the text others.
func (f *updateForm) rule(t *launch.Target, name, others string, defines ...any) *codegen.Source {
	defines = append(defines, "RATES", t.Element(f.rates), "SQUARES", t.Element(f.squares))
	return t.Source(func() codegen.Source {
		return codegen.Source{Name: name, Text: codegen.Defines(defines...) + others + codegen.Text(kernels, "rule.cu") + codegen.Text(kernels, name+".cu")}
	}, append([]any{name, " "}, defines...)...)
}

// A stretch is contiguous elements of a parameter and of its copy, gradient and moments.
type stretch struct {
	at      [5]uint64 // the parameter, its copy, gradient and moments
	count   int
	largest driver.Pointer // where the parameter's largest value is kept; 0: nowhere
}

// stretches returns the elements of op: as one stretch, or one per row if rows have gaps.
func stretches(t *launch.Target, op schedule.Update, largest Largest) (list []stretch) {
	views := viewsOf(op)
	rows, one := 1, stretch{count: op.Param.Rows * op.Param.Cols, largest: largest.At(op.Param)}
	if !whole(op) {
		rows, one = op.Param.Rows, stretch{count: op.Param.Cols}
	}
	for i := range rows {
		s := one
		for k, v := range views {
			if !v.Empty() {
				s.at[k] = uint64(t.At(v.Band(i, 1)))
			}
		}
		list = append(list, s)
	}
	return list
}

// viewsOf returns the views of a parameter, its copy, gradient and moments.
func viewsOf(op schedule.Update) [5]schedule.View {
	views := [5]schedule.View{op.Param, op.Copy, op.Grad}
	copy(views[3:], op.Moment)
	return views
}

// whole reports whether all elements of op form one stretch.
func whole(op schedule.Update) bool {
	for _, v := range viewsOf(op) {
		if !v.Empty() && v.Rows > 1 && v.Cols != v.M.Cols {
			return false
		}
	}
	return true
}

// A block changes a chunk of elements. Chunks are longer in large networks, since each block adds
// up all squares first.
const (
	leastChunk  = 1024
	mostChunk   = 16 * leastChunk
	usualBlocks = 2048
)

// updateAll changes all elements of parameters.
func updateAll(t *launch.Target, f updateForm, ops []schedule.Update, largest Largest) (list []launch.Command) {
	var all []stretch
	total, width, longest := 0, 4, 0
	for _, op := range ops {
		all = append(all, stretches(t, op, largest)...)
	}
	elements := [5]driver.Element{f.param, f.copy, f.grad, f.first, f.second}
	for _, s := range all {
		total += s.count
		if s.largest != 0 {
			longest = max(longest, s.count)
		}
		for k, at := range s.at {
			if at%uint64(width*elements[k].Bytes()) != 0 {
				width = 1
			}
		}
	}
	chunk := leastChunk * min(max(1, total/(leastChunk*usualBlocks)), mostChunk/leastChunk)
	scales := ""
	if longest > 0 { // a cache has at most one part per block
		scales = largest.Scales
		chunk = max(chunk, ints.RoundUp(ints.CeilDiv(longest, largest.Parts), leastChunk))
	}
	source := f.rule(t, "update", scales, "LARGEST", ints.FromBool(longest > 0), "TAIL", launch.Alignment, "SEGMENTS", mostSegments, "MOMENTS", f.moments, "NESTEROV", ints.FromBool(f.nesterov), "COPIES", f.copies, "V", width, "PARAM", f.param, "COPY", f.copy, "GRAD", f.grad, "FIRST", f.first, "SECOND", f.second)
	for len(all) > 0 {
		var segments table
		for _, s := range all[:min(len(all), mostSegments)] {
			segments.add(ints.CeilDiv(s.count, chunk), s.at[0], s.at[1], s.at[2], s.at[3], s.at[4], uint64(s.count))
			if s.largest != 0 {
				segments.words[len(segments.words)-1] |= uint64(s.largest-t.Base) / launch.Alignment << 32
			}
		}
		all = all[segments.n:]
		args := append([]uint64{uint64(chunk), uint64(t.Base)}, f.scale(t)...)
		list = append(list, segments.launch(t, source, append(args, bits(f.beta1), bits(f.beta2), bits(f.epsilon))...))
	}
	return list
}

func bits(v float32) uint64 { return uint64(math.Float32bits(v)) }

// updateRows changes only the rows of a table that a column names.
func updateRows(t *launch.Target, f updateForm, op schedule.Update) launch.Command {
	width := 1
	if quads(t, op.Param) && quads(t, op.Grad) {
		width = 4
	}
	args := []uint64{
		uint64(op.Param.Rows), uint64(op.Param.Cols), uint64(t.At(op.Param)), uint64(op.Param.M.Cols), uint64(t.At(op.Grad)), uint64(op.Grad.M.Cols),
		uint64(t.At(op.Rows)), uint64(op.Rows.M.Cols),
	}
	l := launch.New(f.rule(t, "update_rows", "", "V", width, "PARAM", f.param, "GRAD", f.grad, "INDEX", f.index),
		[3]int{op.Rows.Rows, 1, 1}, [3]int{launch.BlockSize, 1, 1}, append(args, f.scale(t)...)...)
	l.Early = t.Properties.Capability >= 90
	return l
}
