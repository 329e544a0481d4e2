package oracle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// small problems cover every cell, layers, directions and both ends of the network.
func small() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range slices.Concat(cell.All(), cells.Inners()) {
		base := rnn.Problem{Cell: c, Input: 3, Hidden: 4, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train}
		head, symbols := base, base
		head.Output = 5
		symbols.OneHot, symbols.Output = true, 3
		embedded := base
		embedded.Symbols, embedded.Embedding, embedded.Output, embedded.Groups, embedded.Weighted = 3, 2, 6, 2, true
		ps = append(ps, base, head, symbols, embedded)
		turned := []rnn.Problem{base, head, symbols, embedded}[i%4]
		turned.Direction = []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating}[i%3]
		ps = append(ps, turned)
		ragged := []rnn.Problem{symbols, turned, embedded, head}[i%4]
		ragged.Lengths = []rnn.Lengths{"1+3+4", "uniform:50%", "2+2*4", "3*4"}[i/4%4]
		ps = append(ps, ragged)
		ragged = turned
		ragged.Lengths = "1+2+4"
		ps = append(ps, ragged)
		if c.Recurrent > 0 {
			headed := base
			headed.Heads = 2
			ps = append(ps, headed)
		}
		if c.Projects() {
			narrow := turned
			narrow.Projection = 3
			base.Projection, head.Projection, symbols.Projection = 1, 2, 3
			short := narrow
			short.Lengths = "1+3+4"
			ps = append(ps, base, head, symbols, narrow, short)
		}
	}
	return slices.Concat(ps, normal(), bypassed(), batchNormal(), ahead(), transcribedProblems(), dense(), convolutional())
}

// batchNormal problems are those of layers that normalise input products over the minibatch.
func batchNormal() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM, cell.SRU, cell.QRNN2, cell.LSTMPeephole, cell.RNNReLU, cell.MinGRU} {
		base := rnn.Problem{Cell: c, Norm: rnn.NormBatch, Input: 3, Hidden: 4, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train}
		turned := base
		turned.Direction, turned.Skip, turned.Output = rnn.Direction(i%4), 1, 5
		ps = append(ps, base, turned)
		if c.Window == 1 {
			symbols, reset := base, base
			symbols.OneHot, symbols.Output = true, 3
			reset.Resets, reset.Steps = 40, 6
			ps = append(ps, symbols, reset)
		}
	}
	return ps
}

// ahead problems are those of layers with row convolutions, alone and in modules, over fewer steps than there
// are and over more.
func ahead() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.LSTM, cell.RNNReLU, cell.SRU, cell.LSTMC} {
		base := rnn.Problem{Cell: c, Lookahead: 3, Input: 4, Hidden: 4, Layers: 2, Batch: 3, Steps: 5, Pass: rnn.Train}
		module, long := base, base
		module.Skip, module.Layers, module.Output = 1+i%2, 3, 5
		long.Lookahead, long.Skip, long.Norm, long.Input = 7, 1, rnn.NormBatch, 3
		ps = append(ps, base, module, long)
		if c.Projects() {
			base.Projection, base.Lookahead = 3, 1
			ps = append(ps, base)
		}
	}
	return ps
}

// bypassed problems are those of layers with shortcuts: over the input, over more layers than one, and
// with a remainder of layers.
func bypassed() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.LSTM, cell.RNNReLU, cell.GRU, cell.SRU, clippedAt(0.5)} {
		base := rnn.Problem{Cell: c, Skip: 1 + i%2, Input: 4, Hidden: 4, Layers: 3, Batch: 3, Steps: 4, Pass: rnn.Train}
		narrow, symbols, turned, ragged, embedded := base, base, base, base, base
		narrow.Input, narrow.Output = 3, 5
		symbols.OneHot, symbols.Output, symbols.Skip = true, 3, 1
		turned.Direction, turned.Input = rnn.Direction(i), 8
		ragged.Direction, ragged.Lengths = rnn.Direction(3-i), "1+3+4"
		embedded.Symbols, embedded.Embedding = 3, 2
		ps = append(ps, base, narrow, symbols, turned, ragged, embedded)
	}
	return ps
}

// transcribedProblems have transcripts, some of which end before the last step.
func transcribedProblems() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.SRU} {
		base := rnn.Problem{Cell: c, Input: 3, Hidden: 4, Layers: 1 + i%2, Batch: 4, Steps: 6, Output: 3, Transcript: 3, Pass: rnn.Train}
		symbols, turned, bypassed := base, base, base
		symbols.OneHot, symbols.Output, symbols.Transcript = true, 2, 1
		turned.Direction, turned.Steps, turned.Transcript = rnn.Direction(1+i), 9, 8
		bypassed.Layers, bypassed.Skip, bypassed.Input = 3, 1, 4
		ps = append(ps, base, symbols, turned, bypassed)
	}
	return ps
}

// dense problems have a fully connected layer in front of the output layer, with each loss and behind each kind
// of network.
func dense() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.LSTM, cell.RNNReLU, cell.SRU, cell.GRU} {
		base := rnn.Problem{Cell: c, Input: 3, Hidden: 4, Layers: 1 + i%2, Batch: 3, Steps: 4, Output: 5, Dense: 7, Pass: rnn.Train}
		turned, module, grouped, transcribed := base, base, base, base
		turned.Direction, turned.Dense, turned.Lengths = rnn.Direction(i), 3, "1+3+4"
		module.Skip, module.Lookahead, module.Norm = 1, 2, rnn.NormBatch
		grouped.Output, grouped.Groups, grouped.Weighted, grouped.OneHot = 6, 2, true, true
		transcribed.Transcript, transcribed.Steps = 3, 6
		ps = append(ps, base, turned, module, grouped, transcribed)
	}
	return ps
}

// convolutional problems have convolutions in front: of one channel and of several, with even and odd kernels,
// strides that leave a rest, and kernels larger than the input.
func convolutional() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.LSTM, cell.RNNReLU, cell.SRU, cell.QRNN2} {
		base := rnn.Problem{Cell: c, Conv: "3x2x3", Input: 5, Hidden: 4, Layers: 1 + i%2, Batch: 3, Steps: 4, Pass: rnn.Train}
		two, long, turned := base, base, base
		two.Conv, two.Input, two.Output, two.Dense = "2x3x4/2+3x2x2/3", 7, 5, 4
		long.Conv, long.Steps, long.Input, long.Skip, long.Norm = "1x9x8+2x1x1", 3, 2, 1, rnn.NormBatch
		turned.Direction, turned.Output, turned.Transcript, turned.Steps = rnn.Direction(i), 4, 2, 6
		ps = append(ps, base, two, long, turned)
	}
	return ps
}

// normal problems are those of layers that normalise their products.
func normal() []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range []*cell.Cell{cell.RNNTanh, cell.GRU, cell.LSTM.Norm()} {
		base := rnn.Problem{Cell: c, Norm: rnn.NormLayer, Input: 3, Hidden: 4, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train}
		symbols, turned, reset := base, base, base
		symbols.OneHot, symbols.Output = true, 3
		turned.Direction, turned.Lengths = []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating}[i], "1+3+4"
		reset.Resets, reset.Steps = 40, 6
		ps = append(ps, base, symbols, turned, reset)
	}
	return ps
}

// loss is the scalar whose gradient training computes.
func loss(d *rnn.Data) float64 {
	p := d.Problem
	p.Pass = rnn.Forward
	forward := *d
	forward.Problem = p
	var sum float64
	top := fmt.Sprintf("h_l%d", p.Layers-1)
	if rnn.Joins(p) {
		top = "y"
	}
	for _, t := range Reference(&forward) {
		for i, v := range t.Values {
			switch {
			case p.Output > 0 && t.Name == "loss":
				_, weight := d.Class(i)
				sum += v * weight * d.Copies(i%d.Distinct)
			case p.Output == 0 && t.Name == top:
				sum += v * float64(d.Get("dy")[i]) * d.Copies(i/p.Out()%d.Distinct)
			}
		}
	}
	return sum
}

// TestGradients holds the reference's gradients to central differences of its
// forward pass, for a batch with and without copies.
func TestGradients(t *testing.T) {
	const step = 0x1p-17 // exact in float32
	compared, kinked := 0, 0
	for _, p := range small() {
		for _, distinct := range []int{2, 3} {
			d := rnn.NewData(p, 1, distinct, "normal")
			here := loss(d)
			for _, g := range Reference(d) {
				if !g.Gradient {
					continue
				}
				name := strings.TrimPrefix(g.Name, "grad_")
				if name == "dx" {
					name = "x"
				}
				values := d.Get(name)
				for i := 0; i < len(values); i += 1 + len(values)/7 {
					at := i // of the gradient
					if name == "x" && p.Symbols > 0 {
						if i%p.Given() == 0 {
							continue // a symbol
						}
						at = i/p.Given()*p.Input + p.Embedding + i%p.Given() - 1
					}
					saved := values[i]
					values[i] = saved + step
					up, upAt := loss(d), float64(values[i])
					values[i] = saved - step
					down, downAt := loss(d), float64(values[i])
					values[i] = saved
					want := (up - down) / (upAt - downAt)
					got := g.Values[at]
					if g.PerSequence {
						got *= d.Copies(at / g.Cols % d.Distinct)
					}
					compared++
					if jump := math.Abs(up-2*here+down) / step; rnn.Kinked(p) && math.Abs(got-want) > 2e-5 && math.Abs(got-want) < jump {
						kinked++ // the step passes a kink
						continue
					}
					if math.Abs(got-want) > 2e-5*max(1, math.Abs(want)) {
						t.Fatalf("%v, %d distinct: %s[%d] is %v, want %v", p, distinct, g.Name, i, got, want)
					}
				}
			}
		}
	}
	if 100*kinked > compared {
		t.Errorf("%d of %d steps pass a kink", kinked, compared)
	}
}

// TestEmbedded compares an embedding with the one-hot input whose table is the product of the
// embedding with the weights. It compares softmaxes by group with one of the group's classes alone.
func TestEmbedded(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Symbols: 6, Embedding: 3, Output: 6, Groups: 2, Weighted: true}
	d := rnn.NewData(p, 1, 2, "normal")
	q := p
	q.OneHot, q.Input, q.Symbols, q.Embedding, q.Groups, q.Weighted, q.Output = true, 6, 0, 0, 0, false, 3
	hot := rnn.NewData(q, 1, 2, "normal")
	for i := range hot.Tensors {
		if x := &hot.Tensors[i]; x.Name != "weight_ih_l0" {
			x.Values = d.Get(x.Name)[:len(x.Values)]
		}
	}
	table, weights, embedding := hot.Get("weight_ih_l0"), d.Get("weight_ih_l0"), d.Get("embedding")
	for i := range table {
		symbol, gate := i/16, i%16
		table[i] = 0
		for k := range 3 {
			table[i] += embedding[symbol*3+k] * weights[gate*3+k]
		}
	}
	loss := map[string][]float64{}
	for name, data := range map[string]*rnn.Data{"embedded": d, "one-hot": hot} {
		for _, a := range Reference(data) {
			if a.Name == "loss" {
				loss[name] = a.Values
			}
		}
	}
	for row, class := range d.Get("target") {
		_, weight := d.Class(row)
		switch got, want := loss["embedded"][row], loss["one-hot"][row]; {
		case weight == 0 && (got != 0 || class >= 0):
			t.Errorf("row %d of weight 0 has class %v and loss %v", row, class, got)
		case weight > 0 && class < 3 && math.Abs(got-want) > 1e-5:
			t.Errorf("row %d: class %v of the first group has loss %v, and %v where there is no other group", row, class, got, want)
		}
	}
}

// TestWindow holds a cell with a window to the cell without one that reads the
// same steps side by side, 0 before the first.
func TestWindow(t *testing.T) {
	p := rnn.Problem{Cell: cell.QRNN2, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Pass: rnn.Train}
	d := rnn.NewData(p, 1, 2, "normal")
	q := p
	q.Cell, q.Input = cell.QRNN, 6
	wide := &rnn.Data{Problem: q, Distinct: 2}
	for _, x := range d.Tensors {
		if x.Name == "x" {
			var values []float32
			for row := range x.Rows {
				before := make([]float32, 3)
				if row >= 2 {
					before = x.Values[(row-2)*3 : (row-1)*3]
				}
				values = append(append(values, x.Values[row*3:(row+1)*3]...), before...)
			}
			x.Values, x.Cols = values, 6
		}
		wide.Tensors = append(wide.Tensors, x)
	}
	got, want := Reference(d), Reference(wide)
	last := len(got) - 1 // dx, which is folded
	if dev, err := Compare(q, got[:last], want[:last]); err != nil || dev.Error > 1e-13 {
		t.Errorf("%v %v", dev, err)
	}
	dx, both := got[last].Values, want[last].Values
	for row := range p.Steps * p.Batch {
		for i := range 3 {
			sum := both[row*6+i]
			if row+2 < p.Steps*p.Batch {
				sum += both[(row+2)*6+3+i]
			}
			if math.Abs(dx[row*3+i]-sum) > 1e-13 {
				t.Fatalf("dx[%d,%d] is %v, want %v", row, i, dx[row*3+i], sum)
			}
		}
	}
	if got, want := p.FLOPs(), int64(3*2*2*3*4*3*(5+4)); got != want {
		t.Errorf("FLOPs %d, want %d", got, want)
	}
}

// TestCopiesAgree compares a batch of copies with the same batch written out.
func TestCopiesAgree(t *testing.T) {
	for _, p := range small() {
		p.Batch = 5
		if p.Lengths != "" || rnn.Distinct(p, 2) == p.Batch {
			continue // which has no copies
		}
		d := rnn.NewData(p, 1, 2, "normal")
		full := &rnn.Data{Problem: p, Distinct: p.Batch}
		for _, x := range d.Tensors {
			if x.PerSequence {
				x.Values = rnn.Repeat(x.Values, x.Cols, 2, p.Batch)
				x.Rows = len(x.Values) / x.Cols
			}
			full.Tensors = append(full.Tensors, x)
		}
		dev, err := Compare(p, Reference(full), Reference(d))
		if err != nil {
			t.Fatal(err)
		}
		limit := 1e-13
		if p.Norm == rnn.NormBatch { // differences from a mean cancel
			limit = 1e-12
		}
		if dev.Error > limit {
			t.Errorf("%v: %v", p, dev)
		}
	}
}

func TestCompareCatches(t *testing.T) {
	p := small()[1]
	d := rnn.NewData(p, 1, 3, "normal")
	for k := range Reference(d) {
		for _, wrong := range []float64{1e-3, math.NaN(), math.Inf(1)} {
			got, want := Reference(d), Reference(d)
			v := got[k].Values
			v[len(v)-1] += wrong
			dev, err := Compare(p, got, want)
			if err != nil {
				t.Fatal(err)
			}
			if dev.OK() || dev.Tensor != got[k].Name {
				t.Errorf("%s off by %v passes: %v", got[k].Name, wrong, dev)
			}
		}
	}
	if _, err := Compare(p, Reference(d)[1:], Reference(d)); err == nil {
		t.Error("a missing tensor passes")
	}
}

// TestCompareAgain: where the terms of a single number cancel, its error is relative to the usual
// size of such numbers. At this point a bias's gradient, a sum of 15 terms, is a fifth of that
// size.
func TestCompareAgain(t *testing.T) {
	p := rnn.Problem{Cell: cell.RNNTanh, Pass: rnn.Train, Input: 1, Hidden: 1, Layers: 1, Batch: 3, Steps: 5}
	d := rnn.NewData(p, 1, 3, "normal")
	want := Reference(d)
	spread(d, want, nil)
	for k, w := range want {
		if w.Spread <= 0 {
			t.Errorf("%s of %d values has no spread", w.Name, len(w.Values))
		}
		if w.Name != "grad_bias_hh_l0" {
			continue
		}
		if math.Abs(w.Values[0]) > w.Spread/4 {
			t.Errorf("the terms do not cancel: %v beside %v", w.Values[0], w.Spread)
		}
		for part, ok := range map[float64]bool{0.9: true, 1.1: false} {
			got := Reference(d)
			w.data = d
			got[k].Values[0] += part * w.tolerance(p, 0) * w.Spread
			if dev, err := Compare(p, got, Reference(d)); err != nil || dev.OK() {
				t.Errorf("%v of what is tolerated passes at once: %v %v", part, dev, err)
			}
			if dev, _, err := CompareAgain(d, got); err != nil || dev.OK() != ok {
				t.Errorf("%v of what is tolerated: %v %v", part, dev, err)
			}
		}
	}
}

// TestSpreadAtKink: a unit near the kink of ReLU, which its gradient depends on, does not make
// errors beside it tolerable.
func TestSpreadAtKink(t *testing.T) {
	p := rnn.Problem{Cell: cell.RNNReLU, Pass: rnn.Train, Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1}
	for _, above := range []float32{0x1p-13, 0x1p-15, 0x1p-16} { // of sums of terms of 1
		d := rnn.NewData(p, 1, 1, "normal")
		for name, v := range map[string]float32{"x": 1, "weight_ih_l0": 1, "bias_ih_l0": above - 1, "weight_hh_l0": 1, "bias_hh_l0": 0, "h0_l0": 0, "dy": 1} {
			d.Get(name)[0] = v
		}
		want := Reference(d)
		spread(d, want, nil)
		for _, w := range want {
			if w.Spread > 4 {
				t.Errorf("%v above the kink: the spread of %s = %v is %v", above, w.Name, w.Values[0], w.Spread)
			}
		}
	}
}

// TestComparePart checks the last steps alone: of a right answer, of one that is
// wrong there, and of the steps before.
func TestComparePart(t *testing.T) {
	p := small()[1]
	d := rnn.NewData(p, 1, 3, "normal")
	part := func(first, last int) Tensor {
		g := Reference(d)[0]
		g.First, g.Rows = first, (last-first)*d.Distinct
		g.Values = g.Values[first*d.Distinct*g.Cols : last*d.Distinct*g.Cols]
		return g
	}
	for name, c := range map[string]struct {
		of    Tensor
		spoil float64
		ok    bool
	}{
		"right":  {part(p.Steps-1, p.Steps), 0, true},
		"wrong":  {part(p.Steps-1, p.Steps), 1e-3, false},
		"before": {part(p.Steps-2, p.Steps-1), 0, false},
	} {
		if name == "before" {
			c.of.First++
		}
		got := Reference(d)
		c.of.Values[0] += c.spoil
		got[0] = c.of
		dev, err := Compare(p, got, Reference(d))
		if err != nil || dev.OK() != c.ok {
			t.Errorf("%s: %v %v", name, dev, err)
		}
	}
}

func TestUnitErrorWidensTolerance(t *testing.T) {
	p := small()[1]
	exact, rough := Tolerance(p, false, 0), Tolerance(p, false, 0x1p-17)
	if want := 8 * 0x1p-17 * math.Sqrt(float64(p.Steps*p.Layers)); rough < want || rough > want+exact {
		t.Errorf("tolerance %v, want %v and %v", rough, want, exact)
	}
}

func BenchmarkReference(b *testing.B) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 512, Hidden: 512, Layers: 1, Batch: 3, Steps: 20}
	d := rnn.NewData(p, 1, 3, "normal")
	for b.Loop() {
		Reference(d)
	}
	b.ReportMetric(float64(p.FLOPs())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkReferenceWide(b *testing.B) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 1024, Hidden: 1024, Layers: 4, Batch: 32, Steps: 3}
	d := rnn.NewData(p, 1, 3, "normal")
	for b.Loop() {
		Reference(d)
	}
}
