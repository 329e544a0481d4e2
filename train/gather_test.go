package train

import (
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/impl/cudnn"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A store is a program that only keeps what is written.
type store struct {
	device.Program
	rows map[*schedule.Matrix][]float32
}

func (s store) Write(m *schedule.Matrix, src []float32) error {
	s.rows[m] = slices.Clone(src)
	return nil
}

func (s store) Read(m *schedule.Matrix, dst []float32) error {
	copy(dst, s.rows[m])
	return nil
}

// TestStatesOfLayersInOneMatrix: where one matrix has the states of all layers, a checkpoint has those
// of a layer side by side for all replicas, as one device has them.
func TestStatesOfLayersInOneMatrix(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 2, Layers: 3, Batch: 5, Steps: 2, Output: 4}
	o := rnn.Optimizer{Rule: schedule.SGD, Carry: true}
	parts, err := rnn.Parts(p.Batch, 2)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Trainer{Setup: Setup{Problem: p, Optimizer: Optimizer{Optimizer: o}}}
	for _, part := range parts {
		one := p
		one.Batch = part.N
		plan, _, err := rnn.LayoutTraining(cudnn.Technique{}, one, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		tr.replicas = append(tr.replicas, replica{plan, store{rows: map[*schedule.Matrix][]float32{}}, part})
	}
	tr.replica = tr.replicas[0]
	want := map[string][]float32{}
	for name := range tr.kept(tr.replica) {
		for i := range tr.values(name) {
			want[name] = append(want[name], float32(i))
		}
	}
	if n := len(want["h0"]); n != p.Layers*p.Batch*p.Hidden {
		t.Fatalf("the first states have %d values", n)
	}
	if err := tr.scatter(want); err != nil {
		t.Fatal(err)
	}
	layer := p.Batch * p.Hidden
	second := tr.replicas[1]
	if at, got := parts[1].From*p.Hidden, second.program.(store).rows[second.plan.FirstStates()["h0"]]; got[0] != float32(at) || got[parts[1].N*p.Hidden] != float32(layer+at) {
		t.Errorf("the second replica has %v", got)
	}
	for name := range want {
		if got, cols, err := tr.gather(name); err != nil || !slices.Equal(got, want[name]) {
			t.Errorf("%s of %d columns: %v, %v, want %v", name, cols, got, err, want[name])
		}
	}
}
