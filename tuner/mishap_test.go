package tuner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/worker"
	"rnnbench/impl/naive"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// asWorker is the variable that makes the test binary run as a worker.
const asWorker = "RNNBENCH_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	err := worker.Serve(os.Stdin, os.Stdout, func(string) (device.Device, error) {
		d, err := cpu.Open(cpu.Options{Threads: 1})
		return frail{d}, err
	}, func() { os.Exit(1) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// frail is a device that hangs or crashes when asked to.
type frail struct{ *cpu.Device }

func (frail) Provoke(mishap string) error {
	switch mishap {
	case worker.Spin:
		select {}
	case killed:
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	}
	os.Exit(7)
	return nil
}

// clumsy is a technique that marks its schedule with the name of a mishap, which is its name, too.
type clumsy struct {
	rnn.Technique
	mishap string
}

func (c clumsy) Name() string { return c.mishap }
func (c clumsy) Plan(p *rnn.Plan, k knob.Params) error {
	p.Matrix(c.mishap, 1, 1)
	return c.Technique.Plan(p, k)
}

// A stage is a worker that marked schedules break: spins at once, faults when others have run in
// between, which first happens in the rounds.
type stage struct {
	*worker.Device
	patience time.Duration // how long a spinning schedule may take
	last     *actor
}

func (s *stage) Compile(sched *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := s.Device.Compile(sched, k)
	a := &actor{Program: p, stage: s}
	for _, mishap := range []string{worker.Spin, worker.Fault} {
		if slices.ContainsFunc(sched.Matrices, func(m *schedule.Matrix) bool { return m.Name == mishap }) {
			a.mishap = mishap
		}
	}
	return a, err
}

type actor struct {
	device.Program
	stage  *stage
	mishap string
	ran    bool
}

func (a *actor) Run(n int) (device.Sample, error) {
	switch {
	case a.mishap == worker.Spin:
		return device.Sample{}, a.stage.Provoke(a.mishap, a.stage.patience)
	case a.mishap == worker.Fault && a.ran && a.stage.last != a:
		return device.Sample{}, a.stage.Provoke(a.mishap, time.Minute)
	}
	a.ran, a.stage.last = true, a
	return a.Program.Run(n)
}

// mishaps runs a sweep with techniques that break the worker, and with others before and after them.
func mishaps(t *testing.T, name, crash string, command func() *exec.Cmd, patience time.Duration) {
	d, err := worker.Open(worker.Options{Device: name, Command: command})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	spin, fault := clumsy{naive.Technique{}, worker.Spin}, clumsy{naive.Technique{}, worker.Fault}
	s := &tuner.Sweep{Device: &stage{Device: d, patience: patience}, Settings: quick(), Techniques: []rnn.Technique{naive.Technique{}, spin, fault}}
	all := []grid.Spec{{Name: "naive", Label: "first"}, {Name: spin.Name(), Label: "spin"}, {Name: fault.Name(), Label: "fault"}, {Name: "naive", Label: "last"}}
	later := small()
	later.Hidden++
	recs, err := sweep(t, s, context.Background(), []record.Point{small(), later}, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 8 {
		t.Fatalf("%d records, want 8", len(recs))
	}
	for _, r := range recs {
		status, code := record.OK, ""
		switch r.Impl.Label {
		case "spin":
			status, code = record.Timeout, record.ReasonHang
		case "fault":
			status, code = record.Failed, crash
		}
		have := ""
		if r.ReasonCode != nil {
			have = *r.ReasonCode
			t.Logf("%v %s: %s", r.Point, r.Impl.Label, *r.Reason)
		}
		if r.Status != status || have != code {
			t.Errorf("%v %s is %s (%s), want %s (%s)", r.Point, r.Impl.Label, r.Status, have, status, code)
		}
		if status == record.OK && r.Stats.N != 6 {
			t.Errorf("%v %s has %d samples", r.Point, r.Impl.Label, r.Stats.N)
		}
	}
}

func TestMishaps(t *testing.T) {
	mishaps(t, "cpu", record.ReasonPanic, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=1")
		return cmd
	}, 100*time.Millisecond)
}

// TestGPUMishaps is the same on a GPU, by the worker that RNNBENCH_CUDA names.
func TestGPUMishaps(t *testing.T) {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	mishaps(t, "cuda:0", record.ReasonCUDA, func() *exec.Cmd { return exec.Command(path) }, 5*time.Second)
}
