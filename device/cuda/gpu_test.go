package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/device/worker"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// openGPU opens the first GPU through the worker that RNNBENCH_CUDA names, or
// skips.
func openGPU(t testing.TB, timeout time.Duration) *worker.Device {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	d, err := worker.Open(worker.Options{Device: "cuda:0", Timeout: timeout, Command: func() *exec.Cmd { return exec.Command(path) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestGPU runs the suite of devices on a GPU.
func TestGPU(t *testing.T) {
	d := openGPU(t, time.Minute)
	t.Logf("%+v", d.Info())
	devicetest.Run(t, d)
}

// TestGPUMishaps has kernels spin and read out of bounds. Each is told, and the
// GPU is of use again.
func TestGPUMishaps(t *testing.T) {
	d := openGPU(t, 5*time.Second)
	b := schedule.NewBuilder(1)
	m := b.Matrix("m", 3, 5)
	b.Do(0, schedule.Map{Op: cell.OneMinus, Out: m.All(), A: m.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for mishap, want := range map[string]error{worker.Spin: device.ErrHang, worker.Fault: device.ErrFault} {
		start := time.Now()
		if err := d.Provoke(mishap); !errors.Is(err, want) {
			t.Errorf("%s is told as %v", mishap, err)
		} else {
			t.Logf("%s after %v: %v", mishap, time.Since(start), err)
		}
		start = time.Now()
		p, err := d.Compile(s, nil)
		if err != nil {
			t.Fatalf("after %s: %v", mishap, err)
		}
		if _, err := p.Run(3); err != nil {
			t.Errorf("after %s: %v", mishap, err)
		}
		got := make([]float32, m.Elements())
		if err := p.Read(m, got); err != nil || got[0] != 1 {
			t.Errorf("after %s: %v %v", mishap, got, err)
		}
		t.Logf("of use again after %v", time.Since(start))
	}
}
