package cpu

import (
	"math"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// A ctcLoss is a schedule.CTCLoss. Each share has sequences of its own.
//
// Place s of a transcript is label s/2 if s is odd, and else a blank. A forward variable is the
// probability of all ways to reach a place at a step, a backward variable that of all ways on from
// there. Scratch has, at each step, the largest logit, 1 ÷ the softmax's sum, and the forward
// variables.
type ctcLoss struct {
	kernels                             *simd.Kernels
	logits, labels, loss, prob, scratch matrix
	grad                                bool
	scale                               float32
	program                             *program
	rooms                               []ctcRoom // of workers
}

// A ctcRoom is what a worker needs for a sequence.
type ctcRoom struct {
	transcript       []int
	places, products []wide
}

func newCTCLoss(p *binder, op schedule.CTCLoss) work {
	w := &ctcLoss{
		kernels: p.device.kernels, logits: p.matrix(op.Logits), labels: p.matrix(op.Labels), loss: p.matrix(op.Loss), prob: p.matrix(op.Prob), scratch: p.matrix(op.Scratch),
		grad: op.Grad, scale: op.Scale, program: p.program, rooms: make([]ctcRoom, p.device.workers),
	}
	most := 2*op.Labels.Cols + 1
	for i := range w.rooms {
		w.rooms[i] = ctcRoom{make([]int, op.Labels.Cols), make([]wide, most), make([]wide, most)}
	}
	return w
}

func (w *ctcLoss) share(part, parts int, s *scratch) {
	from, to := span(w.labels.rows, 1, part, parts)
	for b := from; b < to; b++ {
		of := ctcSequence{ctcLoss: w, b: b, steps: w.logits.rows / w.labels.rows}
		if of.read(w.rooms[part]) {
			of.run(s.part[:])
		}
	}
}

// A ctcSequence is sequence b of the loss.
type ctcSequence struct {
	*ctcLoss
	b, steps int
	ctcRoom  // as long as the transcript
}

// read reads the transcript, or notes that a label is none.
func (w *ctcSequence) read(room ctcRoom) bool {
	labels := w.labels.row(w.b)
	n := 0
	for ; n < len(labels) && labels[n] != 0; n++ {
		k, ok := w.program.index(labels[n], w.logits.cols)
		if !ok {
			return false
		}
		room.transcript[n] = k
	}
	w.ctcRoom = ctcRoom{room.transcript[:n], room.places[:2*n+1], room.products[:2*n+1]}
	return true
}

// row is the row of step t in logits, probabilities and scratch.
func (w *ctcSequence) row(t int) int { return t*w.labels.rows + w.b }

func (w *ctcSequence) run(piece []float32) {
	for t := range w.steps {
		w.softmax(t, piece)
		w.forward(t)
		if !w.grad {
			w.write(t, 1)
		}
	}
	n := len(w.places)
	all := w.places[n-1]
	if n > 1 {
		all = sum(all, w.places[n-2], nought)
	}
	w.loss.row(w.b)[0] = float32(-all.log())
	if !w.grad {
		return
	}
	for t := w.steps - 1; t >= 0; t-- {
		w.backward(t)
		if all.m == 0 {
			clear(w.prob.row(w.row(t)))
			continue
		}
		w.write(t, w.scale)
		w.subtract(t, all)
	}
}

// softmax finds the largest logit of step t, and the sum of exponentials relative to it.
func (w *ctcSequence) softmax(t int, piece []float32) {
	logits := w.logits.row(w.row(t))
	top, sum := w.kernels.Max(logits), float32(0)
	for at := 0; at < len(logits); at += len(piece) {
		end := min(at+len(piece), len(logits))
		sum += w.kernels.ExpSum(piece[:end-at], logits[at:end], top)
	}
	kept := w.kept(t)
	kept[0], kept[1] = top, 1/sum
}

// kept is the row of scratch of step t.
func (w *ctcSequence) kept(t int) []float32 { return w.scratch.row(w.row(t)) }

// write writes the probabilities of step t, multiplied by a factor.
func (w *ctcSequence) write(t int, by float32) {
	prob, kept := w.prob.row(w.row(t)), w.kept(t)
	w.kernels.ExpSum(prob, w.logits.row(w.row(t)), kept[0])
	w.kernels.Scale(prob, prob, by*kept[1])
}

// probability returns the probability of a class at step t.
func (w *ctcSequence) probability(t, class int) wide {
	kept := w.kept(t)
	return exponential(float64(w.logits.row(w.row(t))[class]) - float64(kept[0])).times(wide{m: float64(kept[1])})
}

// skips reports whether an alignment may go from place s-2 to place s.
func (w *ctcSequence) skips(s int) bool {
	return s%2 == 1 && s > 1 && w.transcript[s/2] != w.transcript[s/2-1]
}

// forward advances the forward variables to step t and, for a gradient, keeps them.
func (w *ctcSequence) forward(t int) {
	blank, kept := w.probability(t, 0), w.kept(t)[2:]
	for s := len(w.places) - 1; s >= 0; s-- { // in place: a place depends on those below
		to := nought
		switch {
		case t == 0 && s < 2:
			to = wide{m: 1}
		case t == 0:
		case w.skips(s):
			to = sum(w.places[s], w.places[s-1], w.places[s-2])
		case s > 0:
			to = sum(w.places[s], w.places[s-1], nought)
		default:
			to = w.places[0]
		}
		if s%2 == 1 {
			to = to.times(w.probability(t, w.transcript[s/2]))
		} else {
			to = to.times(blank)
		}
		if w.places[s] = to; w.grad {
			to.put(kept[2*s:])
		}
	}
}

// backward moves the backward variables back to step t, and sets products to those with the forward
// variables. A place holds its backward variable times its own probability.
func (w *ctcSequence) backward(t int) {
	blank, kept, n := w.probability(t, 0), w.kept(t)[2:], len(w.places)
	for s := range w.places { // in place: a place depends on those above
		from := nought
		switch {
		case t == w.steps-1 && s >= n-2:
			from = wide{m: 1}
		case t == w.steps-1:
		case s+2 < n && w.skips(s+2):
			from = sum(w.places[s], w.places[s+1], w.places[s+2])
		case s+1 < n:
			from = sum(w.places[s], w.places[s+1], nought)
		default:
			from = w.places[s]
		}
		w.products[s] = from.times(wideAt(kept[2*s:]))
		if s%2 == 1 {
			from = from.times(w.probability(t, w.transcript[s/2]))
		} else {
			from = from.times(blank)
		}
		w.places[s] = from
	}
}

// subtract subtracts, from the probabilities of step t, the share of all alignments that have each
// class there.
func (w *ctcSequence) subtract(t int, all wide) {
	prob, blank := w.prob.row(w.row(t)), 0.0
	for s, product := range w.products {
		share := float64(w.scale) * product.over(all)
		if s%2 == 1 {
			prob[w.transcript[s/2]] -= float32(share)
		} else {
			blank += share
		}
	}
	prob[0] -= float32(blank)
}

// A wide is m·2^e. m is at least 1 and less than 2, or 0, or no number. Products of thousands of
// probabilities are no smaller than it can hold, and it keeps the precision that a logarithm would
// lose.
type wide struct {
	m float64
	e int
}

// leastExponent is the exponent of 0, and of all that is smaller. A probability below
// 2^leastProbability is 0.
const (
	leastExponent    = -1 << 30
	leastProbability = -1 << 17
)

// nought is 0.
var nought = wide{e: leastExponent}

// scaled returns m·2^e. m is no subnormal number.
func scaled(m float64, e int) wide {
	bits := math.Float64bits(m)
	of := int(bits >> 52 & 0x7ff)
	if e += of - 1023; of != 0 && of < 0x7ff && e > leastExponent {
		return wide{math.Float64frombits(bits&(1<<52-1) | 1023<<52), e}
	}
	if of == 0x7ff {
		return wide{m: math.NaN()}
	}
	return nought
}

// exponential returns exp(x) for x ≤ 0.
func exponential(x float64) wide {
	n := math.Floor(x * math.Log2E)
	if n < leastProbability {
		return nought
	}
	return scaled(math.Exp(x-n*math.Ln2), int(n))
}

// power returns 2^e for e < 1024. Below the smallest normal number it is 0.
func power(e int) float64 { return math.Float64frombits(uint64(max(e+1023, 0)) << 52) }

func sum(a, b, c wide) wide {
	e := max(a.e, b.e, c.e)
	return scaled(a.m*power(a.e-e)+b.m*power(b.e-e)+c.m*power(c.e-e), e)
}

func (a wide) times(b wide) wide { return scaled(a.m*b.m, a.e+b.e) }

// over returns a ÷ b, which is about 1 at most.
func (a wide) over(b wide) float64 { return a.m / b.m * power(a.e-b.e) }

// log is the logarithm of a; of 0 it is -∞.
func (a wide) log() float64 { return math.Log(a.m) + float64(a.e)*math.Ln2 }

// put keeps a in two words, and wideAt reads it.
func (a wide) put(to []float32) {
	to[0], to[1] = float32(a.m), math.Float32frombits(uint32(int32(a.e)))
}

func wideAt(from []float32) wide {
	return wide{float64(from[0]), int(int32(math.Float32bits(from[1])))}
}
