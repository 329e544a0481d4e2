package tuner_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/worker"
	"rnnbench/impl/cudnnstyle"
	"rnnbench/impl/naive"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// killed is the mishap of a worker that is killed from outside.
const killed = "killed"

// A victim is a device whose worker has a mishap in runs of marked schedules, that many times.
type victim struct {
	*worker.Device
	mishap string
	times  int
}

func (v *victim) Compile(sched *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := v.Device.Compile(sched, k)
	if slices.ContainsFunc(sched.Matrices, func(m *schedule.Matrix) bool { return m.Name == v.mishap }) {
		p = &victimProgram{p, v}
	}
	return p, err
}

type victimProgram struct {
	device.Program
	victim *victim
}

func (p *victimProgram) Run(n int) (device.Sample, error) {
	if v := p.victim; v.times > 0 {
		v.times--
		patience := time.Minute
		if v.mishap == worker.Spin {
			patience = 50 * time.Millisecond
		}
		return device.Sample{}, v.Provoke(v.mishap, patience)
	}
	return p.Program.Run(n)
}

func itself() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"=1")
	return cmd
}

// TestKilledWorker kills the worker once or twice at the same candidate. After the first time the
// candidate runs again; after the second it becomes a record with the reason.
func TestKilledWorker(t *testing.T) {
	for kills, want := range map[int]record.Status{1: record.OK, 2: record.Failed} {
		d, err := worker.Open(worker.Options{Device: "cpu", Command: itself})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		victim := &victim{d, killed, kills}
		s := &tuner.Sweep{Device: victim, Settings: quick(), Techniques: []rnn.Technique{naive.Technique{}, clumsy{naive.Technique{}, killed}}}
		specs := []grid.Spec{{Name: "naive", Label: "naive"}, {Name: killed, Label: killed}}
		recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs)
		if err != nil || len(recs) != 2 {
			t.Fatalf("%d kills: %d records, %v", kills, len(recs), err)
		}
		for _, r := range recs {
			switch {
			case r.Impl.Label == "naive" || want == record.OK:
				if r.Status != record.OK || r.Stats.N != 6 {
					t.Errorf("%d kills: %s is %s", kills, r.Impl.Label, r.Status)
				}
			case r.Status != want || *r.ReasonCode != record.ReasonLost || !r.Passing():
				t.Errorf("%d kills: %s is %s (%s)", kills, r.Impl.Label, r.Status, *r.ReasonCode)
			}
		}
	}
}

// TestLostAtStart kills the worker and makes its next starts fail. The points meanwhile are failed
// records. A worker that never starts again ends the sweep with one sentence.
func TestLostAtStart(t *testing.T) {
	for _, c := range []struct{ fails, records, bad int }{{1, 4, 1}, {100, 1, 1}} {
		starts := 0
		d, err := worker.Open(worker.Options{Device: "cpu", Command: func() *exec.Cmd {
			if starts++; starts > 1 && starts <= 1+c.fails {
				return exec.Command("./there-is-no-such-file")
			}
			return itself()
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Provoke(killed, time.Minute); err == nil {
			t.Fatal("the worker lives")
		}
		var points []record.Point
		for i := range 4 {
			p := small()
			p.Hidden += i
			points = append(points, p)
		}
		s := &tuner.Sweep{Device: d, Settings: quick(), Techniques: []rnn.Technique{naive.Technique{}}}
		recs, err := sweep(t, s, context.Background(), points, []grid.Spec{{Name: "naive", Label: "naive"}})
		if len(recs) != c.records || (err != nil) != (c.fails > 3) {
			t.Fatalf("%d failures: %d records, %v", c.fails, len(recs), err)
		}
		if err != nil && (!strings.Contains(err.Error(), "failed to restart") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%d failures: %v", c.fails, err)
		}
		bad := 0
		for _, r := range recs {
			if r.ReasonCode != nil && *r.ReasonCode == record.ReasonLost && r.Status == record.Failed {
				bad++
			}
		}
		if bad != c.bad {
			t.Errorf("%d failures: %d records of a lost worker, want %d", c.fails, bad, c.bad)
		}
	}
}

// TestLostByAPeer: the technique to compare against breaks the worker, and with it the program that is
// checked. That program is compiled again and compared with the next technique, or checked over fewer
// steps.
func TestLostByAPeer(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 3e5)
	for _, mishap := range []string{killed, worker.Spin, worker.Fault} {
		for _, c := range []struct {
			others []rnn.Technique
			method string
		}{{[]rnn.Technique{cudnnstyle.Technique{}}, record.VerifyPeer}, {nil, record.VerifyShorter}} {
			d, err := worker.Open(worker.Options{Device: "cpu", Command: itself})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			all := append([]rnn.Technique{naive.Technique{}, clumsy{cudnnstyle.Technique{}, mishap}}, c.others...)
			s := once(&tuner.Sweep{Device: &victim{d, mishap, 1}, Techniques: all})
			recs, err := sweep(t, s, context.Background(), []record.Point{long(cell.GRU, "train")}, specs(t, "naive"))
			if err != nil || len(recs) != 1 {
				t.Fatalf("%s: %d records, %v", mishap, len(recs), err)
			}
			r := recs[0]
			if r.Status != record.OK {
				t.Errorf("%s, %d others: %s: %s", mishap, len(c.others), r.Status, *r.Reason)
			} else if r.Verify.Method != c.method {
				t.Errorf("%s, %d others: checked by %s, not %s", mishap, len(c.others), r.Verify.Method, c.method)
			}
		}
	}
}
