package impl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestTranscripts runs networks with the CTC loss by each technique.
func TestTranscripts(t *testing.T) {
	directOf(t, impltest.Transcribed)
}

// TestEmulatedTranscripts runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedTranscripts(t *testing.T) {
	emulatedOf(t, 20, impltest.Transcribed)
}

// TestTranscriptEnds: what a network reads behind the end of a sequence changes neither its loss nor the
// gradients of its earlier steps, and has no gradient.
func TestTranscriptEnds(t *testing.T) {
	one, _ := openWorkers(t)
	p := rnn.Problem{Cell: cell.GRU, Input: 3, Hidden: 5, Layers: 2, Batch: 3, Steps: 9, Output: 4, Transcript: 3, Pass: rnn.Train}
	data := rnn.NewData(p, 1, 3, "normal")
	run := func() []oracle.Tensor {
		answer, err := oracle.Read(ran(t, one, "persistent", p, data))
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	before := run()
	x, target, behind := data.Get("x"), data.Get("target"), 0
	for i := range x {
		row := i / p.Input
		if steps, _ := rnn.Transcript(target[row%p.Batch*(1+p.Transcript):][:1+p.Transcript]); row/p.Batch >= steps {
			x[i], behind = 7, behind+1
		}
	}
	if behind == 0 {
		t.Fatal("no sequence ends before the last step")
	}
	for i, got := range run() {
		switch {
		case strings.HasPrefix(got.Name, "h_") || got.Name == "y": // the layers run on
		case !slices.Equal(got.Values, before[i].Values):
			t.Errorf("%s depends on what is behind the end", got.Name)
		}
		for k, v := range got.Values {
			if got.Name == "dx" && x[k] == 7 && v != 0 {
				t.Errorf("dx[%d], behind the end, is %v", k, v)
			}
		}
	}
}

// TestTranscriptsStepwise checks the loss by what a run left, and plants faults in it and in gradients.
func TestTranscriptsStepwise(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.SRU, cell.RNNReLU} {
		p := rnn.Problem{Cell: c, Input: 11, Hidden: 11, Layers: 2, Batch: 3, Steps: 40, Output: 5, Transcript: 9, Pass: rnn.Train, Direction: rnn.Direction(i % 3)}
		data := rnn.NewData(p, 1, 2, "normal")
		plan, prog := ran(t, d, "cudnnstyle", p, data)
		plantFaults(t, plan, prog, data, map[string]float64{"loss": 0.01, "y": 3, "grad_weight_out": 0.1, "dx": 3})
	}
}

// TestTranscriptsDecline: what does not go with transcripts is declined.
func TestTranscriptsDecline(t *testing.T) {
	p := rnn.Problem{Cell: cell.SRU, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Output: 3, Transcript: 2}
	if _, _, err := rnn.Layout(impl.Lookup("scan"), p, knob.Params{"alone": 1, "inputbatch": 0}); !errors.Is(err, schedule.ErrKnob) || !strings.Contains(err.Error(), "transcript=2") {
		t.Errorf("a part of a pass: %v", err)
	}
	if _, _, err := rnn.LayoutHosted(impl.Lookup("naive"), p, nil); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("a host program: %v", err)
	}
}
