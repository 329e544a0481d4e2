package tuner_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/impl/cudnnstyle"
	"rnnbench/impl/naive"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// once sets s to check a point and hardly time it.
func once(s *tuner.Sweep) *tuner.Sweep {
	s.Settings = quick()
	s.Settings.Rounds, s.Settings.MaxRounds, s.Settings.Warmup, s.Settings.MinTime = 1, 1, 0, 0
	return s
}

// long is a point that counts as large if the reference may compute little.
func long(c *cell.Cell, pass string) record.Point {
	return record.Point{Cell: c.Name, Pass: pass, Hidden: 17, Input: 11, Batch: 5, Steps: 70, Layers: 2, Precision: "fp32"}
}

// embedded is a long point with an embedding, groups of classes and a weighted loss.
func embedded(c *cell.Cell) record.Point {
	p := long(c, "train")
	p.Symbols, p.Embedding, p.Output, p.Groups, p.Weighted = 7, 9, 10, 2, true
	return p
}

// TestLargeProblemsPass: no correct technique is called incorrect at a large point, whatever the method of the
// check.
func TestLargeProblemsPass(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1e5)
	d := open(t)
	methods := map[string]int{}
	for k, c := range cell.All() {
		if testing.Short() && k%3 > 0 {
			continue // some cells stand for all
		}
		for i, pass := range []string{"forward", "train"} {
			points := []record.Point{long(c, pass)}
			p := points[0]
			p.Output, p.OneHot, p.Precision = 7, c.Window == 1, []string{"fp32", "bf16"}[i]
			points = append(points, p)
			if pass == "train" {
				points = append(points, embedded(c))
			}
			p.Direction = []axis.Direction{"both", "alternate", "reverse"}[(k+i)%3]
			points = append(points, p)
			if c.Projects() {
				narrow := long(c, pass)
				narrow.Projection, narrow.Output = 5, 7*i
				points = append(points, narrow)
			}
			recs, err := sweep(t, once(&tuner.Sweep{Device: d}), context.Background(), points, specs(t, "naive", "scc", "scan", "cudnnstyle", "persistent"))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs {
				if r.Status == record.Skipped {
					continue
				}
				if r.Status != record.OK {
					t.Errorf("%v %s: %s %s %+v", r.Point, r.Impl.Label, r.Status, *r.Reason, r.Verify)
					continue
				}
				v := r.Verify
				methods[v.Method]++
				if all := v.Steps == r.Point.Steps; all == slices.Contains(r.Warnings, record.WarnPart) || v.Method == record.VerifyWhole {
					t.Errorf("%v %s: %+v, warnings %v", r.Point, r.Impl.Label, v, r.Warnings)
				}
			}
		}
	}
	t.Log(methods)
	for _, m := range []string{record.VerifyStepwise, record.VerifyPeer} {
		if methods[m] == 0 {
			t.Errorf("no technique was checked by the method %s: %v", m, methods)
		}
	}
}

// A faulty device spoils a part of one matrix after each run of a long schedule.
type faulty struct {
	device.Device
	matrix string
	spoil  func(m *schedule.Matrix, values []float32)
}

type faultyProgram struct {
	device.Program
	of     *faulty
	matrix *schedule.Matrix
}

func (d *faulty) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	f := &faultyProgram{Program: p, of: d}
	for _, m := range s.Matrices {
		if m.Name == d.matrix && len(s.Nodes) > 50 {
			f.matrix = m
		}
	}
	return f, err
}

func (p *faultyProgram) Read(m *schedule.Matrix, dst []float32) error {
	err := p.Program.Read(m, dst)
	if m == p.matrix {
		p.of.spoil(m, dst)
	}
	return err
}

// TestFaultsOfLongRuns plants faults late in a long run, in one sequence or in a sum over all steps. A run
// of fewer steps has none of them.
func TestFaultsOfLongRuns(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1.5e6) // enough for something of each step
	const steps, batch = 70, 5
	row := func(step, seq int) func(m *schedule.Matrix, v []float32) {
		return func(m *schedule.Matrix, v []float32) {
			if m.Rows == (steps+1)*batch {
				step++
			}
			if at := (step*batch + seq) * m.Cols; m.Rows >= steps*batch {
				for i := range m.Cols {
					v[at+i] = 0.01 - v[at+i]
				}
			}
		}
	}
	tests := []struct {
		name, pass, tech, matrix string
		spoil                    func(m *schedule.Matrix, v []float32)
	}{
		{"last step", "forward", "cudnnstyle", "h1", row(steps-1, 1)},
		{"one unit of the last step", "forward", "cudnnstyle", "h0", func(m *schedule.Matrix, v []float32) {
			if m.Rows > steps*batch {
				v[len(v)-1] += 0.01
			}
		}},
		{"one step late in the run", "forward", "cudnnstyle", "h0", row(61, 0)},
		{"state that is no output", "forward", "cudnnstyle", "c1", row(64, 2)},
		{"sequence late in the batch", "forward", "cudnnstyle", "h1", row(63, 4)},
		{"gradient of the input", "train", "cudnnstyle", "dx", row(66, 1)},
		{"gradient through time", "train", "cudnnstyle", "d(x·W)0", row(65, 0)},
		{"gradient between layers", "train", "cudnnstyle", "dy0", row(68, 2)},
		{"sum without the last step", "train", "cudnnstyle", "dW1", func(m *schedule.Matrix, v []float32) {
			if m.Rows == 4*17 {
				v[0] *= 1.5
				v[20] -= v[21]
			}
		}},
		{"recurrent weights", "train", "cudnnstyle", "dR0", func(m *schedule.Matrix, v []float32) { v[len(v)-1] += 100 }},
		{"bias", "train", "cudnnstyle", "dbx1", func(m *schedule.Matrix, v []float32) { v[len(v)-1] += 100 }},
		{"embedding", "embedded", "cudnnstyle", "dE", func(m *schedule.Matrix, v []float32) { v[len(v)-1] += 100 }},
		{"loss of a group", "embedded", "cudnnstyle", "loss", row(66, 1)},
		{"gradient of the initial state", "train", "cudnnstyle", "dc0", func(m *schedule.Matrix, v []float32) { v[len(v)-1] += 100 }},
	}
	for _, test := range tests {
		d := &faulty{Device: open(t), matrix: test.matrix, spoil: test.spoil}
		p := long(cell.LSTM, test.pass)
		if test.pass == "embedded" {
			p = embedded(cell.LSTM)
		}
		recs, err := sweep(t, once(&tuner.Sweep{Device: d}), context.Background(), []record.Point{p}, specs(t, test.tech))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Incorrect || r.Verify.Steps != steps && p.Symbols == 0 {
			t.Errorf("%s: a fault in %s of %s is %s: %+v", test.name, test.matrix, test.tech, r.Status, r.Verify)
		} else {
			t.Log(test.name+":", fmt.Sprintf("%.3g of %.3g;", r.Verify.Error, r.Verify.Tolerance), *r.Reason)
		}
	}
}

// TestFaultsBesideAPeer: a run that keeps too little to be checked by itself is compared with a peer. Either may come
// first in the sweep, and the peer need not be measured. Without a peer, the run is checked over fewer steps, and the
// record says so.
func TestFaultsBesideAPeer(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 3e5)
	spoil := false
	d := &faulty{Device: open(t), matrix: "dR1", spoil: func(_ *schedule.Matrix, v []float32) {
		if spoil {
			v[3] += 100
		}
	}}
	p := long(cell.GRU, "train")
	var known []rnn.Technique // nil: all
	check := func(techniques ...string) []record.Record {
		recs, err := sweep(t, once(&tuner.Sweep{Device: only{d, "x·W"}, Techniques: known}), context.Background(), []record.Point{p}, specs(t, techniques...))
		if err != nil {
			t.Fatal(err)
		}
		return recs
	}
	for _, spoil = range []bool{false, true} {
		recs := check("naive", "cudnnstyle")
		want := map[bool]record.Status{false: record.OK, true: record.Incorrect}[spoil]
		if v := recs[0].Verify; recs[0].Status != want || v.Method != record.VerifyPeer || v.Peer != "cudnnstyle" || v.Steps != p.Steps {
			t.Errorf("naive spoilt %t: %s %+v", spoil, recs[0].Status, v)
		}
		if v := recs[1].Verify; recs[1].Status != record.OK || v.Method != record.VerifyStepwise {
			t.Errorf("cudnnstyle: %s %+v", recs[1].Status, v)
		}
		if r := check("naive")[0]; r.Status != want || r.Verify.Method != record.VerifyPeer || len(r.Warnings) != len(recs[0].Warnings) {
			t.Errorf("naive alone, spoilt %t: %s %+v, warnings %v", spoil, r.Status, r.Verify, r.Warnings)
		}
	}
	spoil, known = false, []rnn.Technique{impl.Lookup("naive")}
	r := check("naive")[0]
	if r.Status != record.OK || r.Verify.Method != record.VerifyShorter || r.Verify.Steps >= p.Steps || !slices.Contains(r.Warnings, record.WarnPart) {
		t.Errorf("the only technique: %s %+v, warnings %v", r.Status, r.Verify, r.Warnings)
	}
}

// TestLargePeers: a technique whose schedule alone takes much memory is not run as a peer, since laying it
// out would take minutes.
func TestLargePeers(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 3e5)
	p := long(cell.GRU, "train")
	p.Steps, p.Hidden, p.Input, p.Batch, p.Layers = 5000, 3, 2, 1, 1
	for bytes, want := range map[int64]string{1 << 20: record.VerifyShorter, 1 << 30: record.VerifyPeer} {
		tuner.SetPeerBytes(t, bytes)
		s := once(&tuner.Sweep{Device: open(t), Techniques: []rnn.Technique{naive.Technique{}, cudnnstyle.Technique{}}})
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive"))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.OK || r.Verify.Method != want {
			t.Errorf("up to %d bytes: %s, %+v; want %s", bytes, r.Status, r.Verify, want)
		}
	}
}

// only spoils the schedules that have a matrix of that name.
type only struct {
	*faulty
	name string
}

func (d only) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	if slices.ContainsFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Name == d.name }) {
		return d.faulty.Compile(s, k)
	}
	return d.Device.Compile(s, k)
}

// TestUnverified: records that were not checked have a warning.
func TestUnverified(t *testing.T) {
	s := once(&tuner.Sweep{Device: open(t)})
	s.Settings.Verify = false
	recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive"))
	if err != nil {
		t.Fatal(err)
	}
	if r := recs[0]; r.Status != record.OK || r.Verify != nil || !slices.Contains(r.Warnings, record.WarnUnverified) {
		t.Errorf("%s, verified %v, warnings %v", r.Status, r.Verify, r.Warnings)
	}
}
