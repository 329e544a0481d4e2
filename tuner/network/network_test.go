package network

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// spoiled is a program whose answers are wrong by one.
type spoiled struct{ device.Program }

func (p spoiled) Read(m *schedule.Matrix, dst []float32) error {
	err := p.Program.Read(m, dst)
	for i := range dst {
		dst[i]++
	}
	return err
}

// TestTrain trains a small network in both ways, and finds wrong answers.
func TestTrain(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g, err := graph.New(graph.Stack{Cell: cell.LSTM, Layers: 1, Input: 3, Hidden: 4, Output: 2})
	if err != nil {
		t.Fatal(err)
	}
	size := graph.Size{Batch: 2, Steps: 3, History: 1}
	r, err := Train(d, g, size, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Ways {
		if w.Seconds <= 0 || !w.Deviation.OK() {
			t.Errorf("%+v", w)
		}
	}
	text := r.Table("a processor")
	if len(text.Rows) != 2 || text.Rows[0][3].Text != "1.00×" || !strings.Contains(text.Rows[1][3].Text, "–") || !r.Ways[1].Ratio.Known() || !strings.HasSuffix(text.Title, "· B=2 T=3 history=1 · a processor") {
		t.Errorf("%+v", text)
	}
	if _, err := Train(d, g, size, 1, 1000); err == nil || !strings.Contains(err.Error(), "but only 1000 B is available") {
		t.Errorf("within 1000 bytes: %v", err)
	}
	var wrong *WrongError
	if _, err := Train(&wrongDevice{d}, g, size, 1, 0); !errors.As(err, &wrong) || wrong.Deviation.OK() {
		t.Errorf("a wrong answer: %v", err)
	}
}

// wrongDevice gives wrong answers.
type wrongDevice struct{ device.Device }

func (d *wrongDevice) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return spoiled{p}, err
}
