package rnn

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Batches says how many sequences each step has, and where the rows of a step lie.
//
// Sequences are numbered from the shortest to the longest. Rows lie step after step, and a step has
// rows of the sequences that have not ended: the last ones. So the states before a step are the
// last rows of the states after the previous step. States before and after a run of steps with
// equally many sequences are one band. PyTorch's PackedSequence has the longest sequence first, so
// there they are no band. Only a LongestFirst has that order.
//
// A step may also have rows of sequences that have ended, so that the number of rows changes less
// often. No sequence's values depend on these rows. Their gradients from above are 0, and so is all
// that follows from those.
type Batches struct {
	batch, steps int
	before       []int // rows before each step, then all rows; nil: all sequences have all steps
	lengths      []int // of the sequences, shortest first; nil with before
	longestFirst bool  // rows of a step, and of matrices with one row a sequence, are in reverse order
}

// A LongestFirst is a technique that runs all steps as one operation. The rows of a step begin with
// the longest sequence, as vendors' libraries and PyTorch pack them.
type LongestFirst interface {
	Technique
	LongestFirst()
}

// batchesOf returns the batches of p, with at most most different batch sizes; 0 is any number.
func batchesOf(p Problem, most int) Batches {
	b := Batches{batch: p.Batch, steps: p.Frames(), lengths: SequenceLengths(p)}
	if b.lengths == nil {
		return b
	}
	ends := b.lengths
	if most > 0 {
		ends = rounded(b.lengths, most)
	}
	b.before = make([]int, b.steps+1)
	for t := range b.steps {
		ended := sort.SearchInts(ends, t+1)
		b.before[t+1] = b.before[t] + p.Batch - ended
	}
	return b
}

// finest bounds the number of different lengths that rounded chooses from.
const finest = 256

// rounded returns lengths, shortest first, rounded up to at most so many different ones, with the least sum.
func rounded(lengths []int, most int) []int {
	n := len(lengths)
	tops := slices.Compact(slices.Clone(lengths))
	if len(tops) > finest {
		tops = nil
		for k := range finest {
			tops = append(tops, lengths[((k+1)*n+finest-1)/finest-1])
		}
		tops = slices.Compact(tops)
	}
	upTo := make([]int, len(tops)+1) // sequences no longer than the last of the first i tops
	for i, top := range tops {
		upTo[i+1] = sort.SearchInts(lengths, top+1)
	}
	least, choice := make([]int, len(tops)+1), make([][]int, 0, most)
	for i := range least[1:] {
		least[i+1] = math.MaxInt
	}
	for range min(most, len(tops)) { // least[j]: the least sum over the first j tops, with so many different lengths
		next, from := make([]int, len(tops)+1), make([]int, len(tops)+1)
		for j := 1; j <= len(tops); j++ {
			next[j] = math.MaxInt
			for i := range j {
				if least[i] == math.MaxInt {
					continue
				}
				if sum := least[i] + (upTo[j]-upTo[i])*tops[j-1]; sum < next[j] {
					next[j], from[j] = sum, i
				}
			}
		}
		next[0] = 0
		least, choice = next, append(choice, from)
	}
	out := make([]int, n)
	for k, j := len(choice)-1, len(tops); j > 0; k-- {
		i := choice[k][j]
		for at := upTo[i]; at < upTo[j]; at++ {
			out[at] = tops[j-1]
		}
		j = i
	}
	return out
}

// Even reports whether all sequences have all steps.
func (b Batches) Even() bool { return b.before == nil }

// Before is the number of rows of the steps before t.
func (b Batches) Before(t int) int {
	if b.before == nil {
		return t * b.batch
	}
	return b.before[t]
}

// Rows is the number of rows of steps [t, t+n).
func (b Batches) Rows(t, n int) int { return b.Before(t+n) - b.Before(t) }

// At is the number of sequences that step t has.
func (b Batches) At(t int) int { return b.Rows(t, 1) }

// Last narrows v, which has a row for each sequence, to the sequences of step t.
func (b Batches) Last(v schedule.View, t int) schedule.View {
	if b.before == nil || v.Empty() {
		return v
	}
	n := b.At(t)
	return v.Band(v.Rows-n, n)
}

// row is the row of sequence j at step t, which the sequence must have.
func (b Batches) row(t, j int) int {
	if b.longestFirst {
		return b.Before(t) + b.batch - 1 - j
	}
	return b.Before(t) + b.At(t) - (b.batch - j)
}

// reorder moves rows, one a sequence, from the order of sequences to the plan's order, or back.
func (b Batches) reorder(values []float32, cols int) []float32 {
	if b.before == nil || !b.longestFirst {
		return values
	}
	values = slices.Clone(values)
	reverseBlocks(values, cols)
	return values
}

// A Run is steps [T, T+N), which have equally many sequences.
type Run struct{ T, N int }

// Runs divides steps [t, t+n) into runs of at most so many steps each.
func (b Batches) Runs(t, n, most int) []Run {
	var list []Run
	for end := t + n; t < end; {
		run := Run{T: t}
		for t < end && run.N < most && b.At(t) == b.At(run.T) {
			t, run.N = t+1, run.N+1
			if b.before == nil {
				run.N = min(most, end-run.T)
				t = run.T + run.N
			}
		}
		list = append(list, run)
	}
	return list
}

// visitExisting visits the rows of steps that exist: where each lies, its step and its sequence.
func (b Batches) visitExisting(visit func(row, t, j int)) {
	for t := range b.steps {
		n := b.At(t)
		for j := b.batch - n; j < b.batch; j++ {
			if b.lengths == nil || t < b.lengths[j] {
				visit(b.row(t, j), t, j)
			}
		}
	}
}

// pack moves rows of steps × sequences to their places in the plan; rows past a sequence's end are 0.
func (b Batches) pack(values []float32, cols int) []float32 {
	if b.before == nil {
		return values
	}
	out := make([]float32, b.Before(b.steps)*cols)
	b.visitExisting(func(row, t, j int) {
		from := (t*b.batch + j) * cols
		copy(out[row*cols:(row+1)*cols], values[from:from+cols])
	})
	return out
}

// unpack is the opposite of pack; flipped rows have each sequence's last step first.
func (b Batches) unpack(values []float32, cols int, flipped bool) []float32 {
	out := make([]float32, b.steps*b.batch*cols)
	b.visitExisting(func(row, t, j int) {
		if flipped {
			t = b.lengths[j] - 1 - t
		}
		to := (t*b.batch + j) * cols
		copy(out[to:to+cols], values[row*cols:(row+1)*cols])
	})
	return out
}

// flip maps each row to the row of the same sequence that is as far from its other end. A row past
// an end maps to itself.
func (b Batches) flip() []float32 {
	index := make([]float32, b.Before(b.steps))
	if b.before == nil {
		for row := range index {
			index[row] = float32((b.steps-1-row/b.batch)*b.batch + row%b.batch)
		}
		return index
	}
	for row := range index {
		index[row] = float32(row)
	}
	b.visitExisting(func(row, t, j int) {
		t = b.lengths[j] - 1 - t
		index[row] = float32(b.row(t, j))
	})
	return index
}

// priors maps each row to the row of the states before its step, in a matrix that has the initial states in front.
func (b Batches) priors() []float32 {
	index := make([]float32, b.Before(b.steps))
	for t := range b.steps {
		n, first := b.At(t), b.batch+b.Before(t)-b.At(t)
		for i := range n {
			index[b.Before(t)+i] = float32(first + i)
		}
	}
	return index
}

// weights is the weight of each row's loss in the mean of all losses.
func (b Batches) weights() []float32 {
	index, n := make([]float32, b.Before(b.steps)), 0
	b.visitExisting(func(int, int, int) { n++ })
	b.visitExisting(func(row, _, _ int) { index[row] = float32(1 / float64(n)) })
	return index
}

// SizesKnob is the knob for the number of batch sizes as sequences end; its default is the first of
// values. There is none where all sequences have all steps.
func SizesKnob(p Problem, values ...int) []knob.Knob {
	if p.Lengths == "" {
		return nil
	}
	return []knob.Knob{{Name: sizesName, Doc: "most batch sizes from the first step to the last: ended sequences run on until the next size; 1: all run to the last step; 0: none runs on",
		Values: values, Min: 0, Max: mostLengths}}
}

// PaddingKnob is SizesKnob for a library that takes either the rows that exist or padded rows of
// all sequences at all steps. Either way it computes only those that exist.
func PaddingKnob(p Problem) []knob.Knob {
	if p.Lengths == "" {
		return nil
	}
	return []knob.Knob{{Name: sizesName, Doc: "rows of a step: of the sequences that have it, packed (0), or of all sequences, padded (1)", Values: []int{0, 1}}}
}

// LaunchedSizes makes a smaller number of batch sizes the default, since a launch takes as long as some steps.
func LaunchedSizes(knobs []knob.Knob) []knob.Knob {
	const few = 4
	if k := knob.Find(knobs, sizesName); k != nil {
		k.Values = append([]int{few}, slices.DeleteFunc(k.Values, func(n int) bool { return n == few })...)
	}
	return knobs
}

const sizesName = "batchsizes"

// uneven holds the constants that operations read where sequences have lengths of their own. The
// stacks of a network share it. Each constant is made on first use.
type uneven struct {
	priors *schedule.Matrix // see Batches.priors
	weight *schedule.Matrix // see Batches.weights
}

// stateAfter views a state after steps [t, t+n).
func (p *Matrices) stateAfter(m *schedule.Matrix, t, n int) schedule.View {
	return m.Band(p.Problem.Batch+p.Batches.Before(t), p.Batches.Rows(t, n))
}

// stateBefore views a state before steps [t, t+n), which are a run.
func (p *Matrices) stateBefore(m *schedule.Matrix, t, n int) schedule.View {
	b := p.Batches.At(t)
	return m.Band(p.Problem.Batch+p.Batches.Before(t)-b, n*b)
}

// After views the states of layer l after step t.
func (p *Matrices) After(l, t int) []schedule.View { return p.stepViews(l, t+1) }

// Before views the states of layer l before step t.
func (p *Matrices) Before(l, t int) []schedule.View {
	if t == 0 || p.Batches.At(t) == p.Batches.At(t-1) {
		return p.stepViews(l, t)
	}
	var views []schedule.View
	for _, m := range p.Layer[l].State {
		views = append(views, p.stateBefore(m, t, 1))
	}
	return views
}

// priorStates adds an operation that copies the states before all steps that layer l's recurrent
// product multiplies. In place, they form one band only within a run.
func priorStates(p *Plan, stream, l int) schedule.View {
	u := p.uneven
	if u.priors == nil {
		u.priors = p.Matrix("priors", p.Batches.Before(p.Steps), 1)
	}
	from := p.Layer[l].shown(p.Cell.Through)
	m := p.Matrix(fmt.Sprintf("%s before", from.Name), p.Batches.Before(p.Steps), from.Cols)
	p.Do(stream, schedule.Gather{Index: u.priors.All(), Table: from.All(), Out: m.All()})
	return m.All()
}
