package train_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/train"
	"rnnbench/train/data"
)

// someText is a file of letters, some of which follow from those before.
func someText(t *testing.T) string {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 3000)
	for i := range text {
		text[i] = byte('a' + rng.IntN(3))
		if i > 1 && rng.IntN(4) > 0 {
			text[i] = text[i-2]
		}
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return "text:" + path
}

func openData(t *testing.T, spec string, o data.Options) data.Source {
	s, err := data.Open(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHistory: truncated backpropagation over steps of earlier minibatches agrees with double
// precision, from the first iteration on.
func TestHistory(t *testing.T) {
	const batch, steps = 2, 5
	spec := someText(t)
	o, err := train.ParseOptimizer("sgd:lr=1:momentum=0.9:clip=1", rnn.FP32)
	if err != nil {
		t.Fatal(err)
	}
	for _, history := range []int{0, 3, 5, 12} {
		s := train.Setup{
			Device: open(t), Technique: impl.Lookup("scc"), Optimizer: o, Seed: 3, Source: openData(t, spec, data.Options{Batch: batch, Steps: steps}),
			Problem: rnn.Problem{Cell: cell.LSTMC, Hidden: 11, Layers: 1, Batch: batch, Steps: steps, History: history},
		}
		tr := newTrainer(t, s)
		p := tr.Problem
		first := rnn.NewData(p, s.Seed, batch, "zeros")
		first.ClearStates()
		o := o.Optimizer
		o.Carry = true
		ref, source := oracle.NewDescent(first, o), openData(t, spec, data.Options{Batch: batch, Steps: steps})
		next := func() {
			x := ref.Data.Get("x")
			source.Next(x[len(x)/p.Frames()*history:], ref.Data.Get("target"))
		}
		for range p.Runs() {
			next()
			ref.See()
		}
		for i := range 12 {
			next()
			want := ref.Step(s.Optimizer.Rate, s.Optimizer.Clip)
			if got := step(t, tr, 1); math.Abs(got-want) > 1e-4*want {
				t.Errorf("history %d: at iteration %d the loss is %v, want %v", history, i+1, got, want)
			}
		}
	}
}

// TestEvaluateCarries: a held-out text in several minibatches has the loss of one in a piece.
func TestEvaluateCarries(t *testing.T) {
	d, spec := open(t), someText(t)
	loss := func(tech string, steps, batches int) float64 {
		o := data.Options{Batch: 2, Steps: 8} // of training
		held := data.Options{Batch: 3, Steps: steps, Held: true}
		tr := newTrainer(t, train.Setup{
			Device: d, Technique: impl.Lookup(tech), Optimizer: train.Optimizer{Rate: 1}, Seed: 3, Source: openData(t, spec, o),
			Problem: rnn.Problem{Cell: cell.LSTM, Hidden: 11, Layers: 2, Batch: o.Batch, Steps: o.Steps},
		})
		e, err := tr.NewEvaluator(openData(t, spec, held), 3, steps, batches)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := tr.Step(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		var scores [2]train.Score
		for i := range scores {
			if scores[i], err = e.Evaluate(tr); err != nil {
				t.Fatal(err)
			}
		}
		if scores[0] != scores[1] {
			t.Errorf("%s: the same network scores %+v, then %+v", tech, scores[0], scores[1])
		}
		return scores[0].Loss
	}
	for _, tech := range []string{"naive", "cudnnstyle", "persistent", "scc"} {
		whole, pieces := loss(tech, 24, 1), loss(tech, 6, 4)
		if math.Abs(whole-pieces) > 1e-6*whole {
			t.Errorf("%s: the loss is %v in a piece, %v in four", tech, whole, pieces)
		}
	}
}
