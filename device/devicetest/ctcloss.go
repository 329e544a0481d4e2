package devicetest

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/ctc"
	"rnnbench/rnn/schedule"
)

// transcripts is the name of matrices with a transcript in each row: some of the classes 1 to 4, then
// zeros.
const transcripts = "transcripts"

// transcribed builds the operation. Some transcripts do not fit the steps. Others have so many steps
// that logarithms of probabilities in single precision would be too far off.
func transcribed(t *trial) schedule.CTCLoss {
	batch, steps, labels, grad := 1+t.rng.IntN(33), t.size(), 1+t.rng.IntN(3), t.flip()
	if t.flip() {
		batch, labels = 1+t.rng.IntN(3), t.size()
	}
	if t.rng.IntN(3) == 0 {
		batch, steps = 1, 1000+t.size()
	}
	rows, cols := batch*steps, 4+t.size()
	op := schedule.CTCLoss{
		Logits: t.place(rows, cols), Labels: t.b.Matrix(transcripts, batch, labels).All(), Loss: t.place(batch, 1),
		Scratch: t.b.Scratch("scratch", rows, schedule.CTCScratch(labels, grad)).All(), Grad: grad, Scale: 0.25,
	}
	if op.Prob = op.Logits; t.flip() {
		op.Prob = t.place(rows, cols)
	}
	return op
}

// ctcLoss evaluates the loss of each sequence, and probabilities or the gradient.
func ctcLoss(v values, op schedule.CTCLoss) {
	batch := op.Labels.Rows
	for b := range batch {
		logits := make([][]float64, op.Steps())
		for t := range logits {
			for k := range op.Logits.Cols {
				logits[t] = append(logits[t], *v.at(op.Logits, t*batch+b, k))
			}
		}
		var labels []int
		for u := range op.Labels.Cols {
			k := int(v[op.Labels.M.ID][(op.Labels.Row+b)*op.Labels.M.Cols+op.Labels.Col+u])
			if k == 0 {
				break
			}
			labels = append(labels, k)
		}
		loss, logProb, gradient := ctc.Loss(logits, labels, nil)
		*v.at(op.Loss, b, 0) = loss
		for t := range logits {
			for k := range op.Logits.Cols {
				if op.Grad {
					*v.at(op.Prob, t*batch+b, k) = float64(op.Scale) * gradient[t][k]
				} else {
					*v.at(op.Prob, t*batch+b, k) = math.Exp(logProb[t][k])
				}
			}
		}
	}
}

// oddLogits runs a schedule.CTCLoss on logits that are large, infinite or no number. What is not
// finite in one sequence leaves the others as they are. Labels that are no class are refused.
func oddLogits(t *testing.T, d device.Device) {
	const batch, steps, classes = 4, 5, 4
	b := schedule.NewBuilder(1)
	logits, labels, loss := b.Matrix("logits", batch*steps, classes), b.Matrix("labels", batch, 3), b.Matrix("loss", batch, 1)
	prob, scratch := b.Matrix("prob", batch*steps, classes), b.Scratch("scratch", batch*steps, schedule.CTCScratch(3, true))
	b.Do(0, schedule.CTCLoss{Logits: logits.All(), Labels: labels.All(), Loss: loss.All(), Prob: prob.All(), Scratch: scratch.All(), Grad: true, Scale: 0.5})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if errors.Is(err, schedule.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, odd := range []float64{-1e30, -1e6, 150, math.Inf(-1), math.Inf(1), math.NaN()} {
		for class := range classes { // at the second step of the second sequence
			want := newValues(s)
			fill(s, want, 1)
			want[logits.ID][(batch+1)*classes+class] = odd
			copy(want[labels.ID], []float64{1, 2, 0, 2, 1, 2, 0, 0, 0, 3, 3, 3}) // the last needs all steps
			start := make([][]float32, len(want))
			for i, v := range want {
				for _, x := range v {
					start[i] = append(start[i], float32(x))
				}
			}
			want.eval(s.Nodes[0].Op)
			got, err := results(p, s, start)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []*schedule.Matrix{loss, prob} {
				for i, want := range want[m.ID] {
					if x := float64(got[m.ID][i]); !(math.Abs(x-want) <= 1e-5*max(1, math.Abs(want))) && x != want && !(math.IsNaN(x) && math.IsNaN(want)) {
						t.Errorf("%s: with a logit of %v of class %d, %s[%d] is %v, want %v", d.Info().Key, odd, class, m.Name, i, x, want)
					}
				}
			}
		}
	}
	for _, bad := range []float32{classes, -1, 0.5, float32(math.NaN())} {
		if err := p.Write(labels, []float32{1, 2, 0, 1, bad, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(1); err == nil {
			t.Errorf("%s: label %v of %d classes is accepted", d.Info().Key, bad, classes)
		}
	}
}
