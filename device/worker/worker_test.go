package worker_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/devicetest"
	"rnnbench/device/worker"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// asWorker makes the test binary a worker.
const asWorker = "RNNBENCH_TEST_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(asWorker) {
	case "":
		os.Exit(m.Run())
	case "chatter":
		fmt.Println("no device here")
		os.Exit(3)
	case "parent":
		parent()
	case "silent":
		time.Sleep(time.Hour)
	case "line", "greeting", "answer":
		flood(os.Getenv(asWorker))
	}
	err := worker.Serve(os.Stdin, os.Stdout, func(name string) (device.Device, error) {
		if name != "cpu" {
			return nil, fmt.Errorf("there is no device %s", name)
		}
		d, err := cpu.Open(cpu.Options{Threads: 1})
		if err == nil && os.Getenv(asWorker) == "fed" {
			return devicetest.Fed(d), nil
		}
		return clumsy{d}, err
	}, func() { os.Exit(1) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// clumsy is a device that hangs or crashes on request, and that has an energy meter.
type clumsy struct{ *cpu.Device }

func (clumsy) Power() (device.Power, error) {
	return device.Power{Source: "test", Joules: 7, Watts: 3, Clock: 2, Temperature: 1}, nil
}

func (clumsy) LaunchTime() (float64, error) { return 3e-6, nil }

func (clumsy) Provoke(mishap string) error {
	switch mishap {
	case worker.Spin:
		select {}
	case worker.Fault:
		return fmt.Errorf("an illegal access: %w", device.ErrFault)
	}
	fmt.Fprintln(os.Stderr, "out of luck")
	os.Exit(7)
	return nil
}

// TestPower: a meter's readings come through the pipe unchanged.
func TestPower(t *testing.T) {
	d, err := open(t, "cpu", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if p, err := d.Power(); err != nil || p != (device.Power{Source: "test", Joules: 7, Watts: 3, Clock: 2, Temperature: 1}) {
		t.Errorf("%+v, %v", p, err)
	}
	if s, err := d.LaunchTime(); err != nil || s != 3e-6 {
		t.Errorf("a launch takes %v s, %v", s, err)
	}
}

func open(t testing.TB, mode, name string) (*worker.Device, error) {
	return worker.Open(worker.Options{Device: name, Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"="+mode)
		return cmd
	}})
}

// TestDevice runs the whole suite with matrices through shared memory and through the pipe.
func TestDevice(t *testing.T) {
	var both []device.Device
	for _, unshared := range []bool{false, true} {
		d, err := open(t, "serve", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		if info := d.Info(); info.Name != "cpu" || info.Workers != 1 {
			t.Errorf("the device is %+v", info)
		}
		if unshared {
			d.Unshare()
		}
		both = append(both, d)
		defer func() {
			if runtime.GOOS == "linux" && d.Shared() == unshared {
				t.Errorf("worker and parent share memory: %v", d.Shared())
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if _, err := d.Memory(&schedule.Schedule{Streams: 1}, nil); err != nil {
				t.Errorf("a closed worker does not start again: %v", err)
			}
			d.Close()
		}()
	}
	devicetest.RunShort(t, both...)
}

// BenchmarkWrite measures the time of a matrix of 16 MiB to the worker and back.
func BenchmarkWrite(b *testing.B) {
	for _, way := range []string{"window", "pipe"} {
		b.Run(way, func(b *testing.B) {
			d, err := open(b, "serve", "cpu")
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			if way == "pipe" {
				d.Unshare()
			}
			build := schedule.NewBuilder(1)
			m := build.Matrix("m", 1<<11, 1<<11)
			build.Do(0, schedule.Map{Op: cell.Zero, Out: m.All()})
			s, err := build.Schedule()
			if err != nil {
				b.Fatal(err)
			}
			p, err := d.Compile(s, nil)
			if err != nil {
				b.Fatal(err)
			}
			values := make([]float32, m.Elements())
			b.SetBytes(8 * int64(len(values)))
			for b.Loop() {
				if err := errors.Join(p.Write(m, values), p.Read(m, values)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMishaps makes the device hang, fail and crash. Each mishap is reported, the programs of the
// worker are lost, and the next Compile starts a fresh worker.
func TestMishaps(t *testing.T) {
	d, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := schedule.NewBuilder(1)
	m := b.Matrix("m", 1, 3)
	b.Do(0, schedule.Map{Op: cell.Zero, Out: m.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for mishap, want := range map[string]error{worker.Spin: device.ErrHang, worker.Fault: device.ErrFault, "crash": device.ErrFault} {
		limit := time.Minute // only a hang would take so long
		if mishap == worker.Spin {
			limit = 100 * time.Millisecond
		}
		p, err := d.Compile(s, nil)
		if err != nil {
			t.Fatalf("before %s: %v", mishap, err)
		}
		if _, err := p.Run(2); err != nil {
			t.Fatalf("before %s: %v", mishap, err)
		}
		err = d.Provoke(mishap, limit)
		if !errors.Is(err, want) {
			t.Errorf("%s is reported as %v", mishap, err)
		}
		if mishap == "crash" && !(strings.Contains(err.Error(), "out of luck") && strings.Contains(err.Error(), "7")) {
			t.Errorf("a crash is reported as %v", err)
		}
		if _, err := p.Run(1); !errors.Is(err, device.ErrLost) {
			t.Errorf("after %s an earlier program returns %v", mishap, err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("after %s: %v", mishap, err)
		}
	}
}

// TestKilled: Knobs returns the same after the worker was killed.
func TestKilled(t *testing.T) {
	d, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := schedule.NewBuilder(1)
	op := schedule.Scan{Sequence: schedule.Sequence{Cell: cell.GILR, Steps: 2, X: b.Matrix("x", 2, 2).All(), BX: b.Matrix("bx", 1, 2).All()}}
	op.State = []schedule.View{b.Matrix("h", 3, 1).All()}
	b.Do(0, op)
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	want := d.Knobs(s)
	d.Kill()
	if got := d.Knobs(s); len(want) == 0 || len(got) != len(want) {
		t.Errorf("%d knobs, and %d of a fresh worker", len(want), len(got))
	}
}

func TestNoWorker(t *testing.T) {
	if _, err := open(t, "chatter", "cpu"); err == nil || !strings.Contains(err.Error(), "no device here") {
		t.Errorf("a process that is no worker: %v", err)
	}
	if _, err := open(t, "serve", "cuda:9"); err == nil || !strings.Contains(err.Error(), "no device cuda:9") {
		t.Errorf("a device that is not there: %v", err)
	}
	_, err := worker.Open(worker.Options{Command: func() *exec.Cmd { return exec.Command("./there-is-no-such-file") }})
	if err == nil {
		t.Error("a worker without an executable starts")
	}
}

func is(err, target error) bool { return errors.Is(err, target) }
