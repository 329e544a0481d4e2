package schedule

import "testing"

// TestCTCLossChecks: shapes that do not fit are refused, and so are operands that overlap.
func TestCTCLossChecks(t *testing.T) {
	for name, change := range map[string]func(b *Builder, op *CTCLoss){
		"":                     func(*Builder, *CTCLoss) {},
		"steps of no whole":    func(b *Builder, op *CTCLoss) { op.Labels = b.Matrix("labels", 4, 2).All() },
		"probabilities":        func(b *Builder, op *CTCLoss) { op.Prob = b.Matrix("prob", 9, 5).All() },
		"scratch of inference": func(b *Builder, op *CTCLoss) { op.Scratch = op.Scratch.Columns(0, CTCScratch(2, false)) },
		"losses of steps":      func(b *Builder, op *CTCLoss) { op.Loss = b.Matrix("loss", 9, 1).All() },
		"overlap":              func(b *Builder, op *CTCLoss) { op.Loss = op.Labels.Columns(1, 1) },
		"no labels":            func(b *Builder, op *CTCLoss) { op.Labels = View{} },
	} {
		b := NewBuilder(1)
		logits := b.Matrix("logits", 9, 4).All()
		op := CTCLoss{
			Logits: logits, Labels: b.Matrix("labels", 3, 2).All(), Loss: b.Matrix("loss", 3, 1).All(), Prob: logits,
			Scratch: b.Scratch("scratch", 9, CTCScratch(2, true)).All(), Grad: true, Scale: 1,
		}
		change(b, &op)
		b.Do(0, op)
		if _, err := b.Schedule(); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestScaleLosses: both kinds of losses are scaled.
func TestScaleLosses(t *testing.T) {
	b := NewBuilder(1)
	logits, column := b.Matrix("logits", 9, 4).All(), func(rows int) View { return b.Matrix("column", rows, 1).All() }
	b.Do(0, SoftmaxLoss{Logits: logits, Target: column(9), Loss: column(9), Prob: logits, Grad: true, Scale: 0.5})
	b.Do(0, CTCLoss{Logits: logits, Labels: column(3), Loss: column(3), Prob: logits, Scratch: b.Scratch("scratch", 9, CTCScratch(1, true)).All(), Grad: true, Scale: 0.25})
	b.ScaleLosses(8)
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if a, c := s.Nodes[0].Op.(SoftmaxLoss).Scale, s.Nodes[1].Op.(CTCLoss).Scale; a != 4 || c != 2 {
		t.Errorf("scales are %v and %v, want 4 and 2", a, c)
	}
}
