package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/device/worker"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
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

// TestGPUMishaps: kernels that spin or read out of bounds are reported, and the GPU works again
// afterwards.
func TestGPUMishaps(t *testing.T) {
	d := openGPU(t, time.Minute)
	b := schedule.NewBuilder(1)
	m := b.Matrix("m", 3, 5)
	b.Do(0, schedule.Map{Op: cell.OneMinus, Out: m.All(), A: m.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for mishap, want := range map[string]error{worker.Spin: device.ErrHang, worker.Fault: device.ErrFault} {
		start := time.Now()
		if err := d.Provoke(mishap, 5*time.Second); !errors.Is(err, want) {
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

// BenchmarkGPUDispatch measures an operation launched alone and replayed in a graph. Operations
// that do next to nothing run on one stream, on four independent streams, and on four streams of
// which each waits for the previous operation. Products run by either choice of an algorithm.
func BenchmarkGPUDispatch(b *testing.B) {
	d := openGPU(b, time.Minute)
	const operations = 2000
	flip := func(streams, matrices int) func(*schedule.Builder) {
		return func(build *schedule.Builder) {
			var all []*schedule.Matrix
			for i := range matrices {
				all = append(all, build.Matrix(fmt.Sprint("m", i), 1, 1))
			}
			for i := range operations {
				m := all[i%matrices]
				build.Do(i%streams, schedule.Map{Op: cell.OneMinus, Out: m.All(), A: m.All()})
			}
		}
	}
	product := func(m, n, k int) func(*schedule.Builder) {
		return func(build *schedule.Builder) {
			x, y, z := build.Matrix("x", m, k), build.Matrix("y", n, k), build.Matrix("z", m, n)
			for range operations {
				build.Do(0, schedule.Gemm{A: x.All(), B: y.All(), TransB: true, C: z.All()})
			}
		}
	}
	for _, way := range []struct {
		name    string
		streams int
		plan    func(*schedule.Builder)
	}{
		{"stream", 1, flip(1, 1)}, {"streams", 4, flip(4, 4)}, {"waits", 4, flip(4, 1)},
		{"product/16x16x16", 1, product(16, 16, 16)}, {"product/64x512x512", 1, product(64, 512, 512)}, {"product/64x2048x512", 1, product(64, 2048, 512)},
	} {
		build := schedule.NewBuilder(way.streams)
		way.plan(build)
		s, err := build.Schedule()
		if err != nil {
			b.Fatal(err)
		}
		offered := d.Knobs(s)
		for _, k := range knob.Combinations(offered, 2) {
			if k["split"] != 0 {
				continue
			}
			all, err := k.Complete(offered)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(way.name+"/"+all.String(), func(b *testing.B) {
				p, err := d.Compile(s, k)
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				if _, err := p.Run(2); err != nil {
					b.Fatal(err)
				}
				t, err := p.Run(b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(t.Wall.Seconds()/float64(b.N)/operations*1e9, "ns/operation")
			})
		}
	}
}

// TestGPUTransfers writes and reads matrices that need more than one transfer buffer, and odd
// sizes.
func TestGPUTransfers(t *testing.T) {
	d := openGPU(t, time.Minute)
	b := schedule.NewBuilder(1)
	var all []*schedule.Matrix
	for _, elements := range []int{1 << 18, 1<<18 - 1, 1 << 21, 1<<21 + 1, 7_654_321} {
		m := b.Matrix("m", elements, 1)
		b.Do(0, schedule.Map{Op: cell.OneMinus, Out: m.All(), A: m.All()})
		all = append(all, m)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, m := range all {
		v := make([]float32, m.Elements())
		for i := range v {
			v[i] = float32(i % 65521)
		}
		if err := p.Write(m, v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Run(1); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		v := make([]float32, m.Elements())
		if err := p.Read(m, v); err != nil {
			t.Fatal(err)
		}
		for i, x := range v {
			if want := 1 - float32(i%65521); x != want {
				t.Fatalf("element %d of %d is %v, want %v", i, len(v), x, want)
			}
		}
	}
}
