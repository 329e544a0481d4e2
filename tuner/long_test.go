package tuner_test

import (
	"context"
	"testing"

	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
)

// counting remembers the most steps that a technique was asked to lay out.
type counting struct {
	rnn.Technique
	most *int
}

func (c counting) Plan(p *rnn.Plan, k knob.Params) error {
	*c.most = max(*c.most, p.Steps)
	return c.Technique.Plan(p, k)
}

// TestSweepDeclinesLongSchedules: points whose matrices fit in memory but whose schedules do not are
// declined for memory before they are laid out.
func TestSweepDeclinesLongSchedules(t *testing.T) {
	for _, name := range []string{"naive", "cudnnstyle", "scc"} {
		p := small()
		p.Hidden, p.Input, p.Batch, p.Layers, p.Steps = 1, 1, 1, 1, 20000
		most := 0
		s := &tuner.Sweep{Device: open(t), Settings: quick(), MaxMemory: 20 << 20}
		for _, tech := range impl.All() {
			s.Techniques = append(s.Techniques, counting{tech, &most})
		}
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Skipped || *r.ReasonCode != record.ReasonMemory {
			t.Errorf("%s: %s, want %s", name, r.Status, record.ReasonMemory)
		}
		if most == p.Steps {
			t.Errorf("%s: all %d steps were laid out", name, most)
		}
	}
}
