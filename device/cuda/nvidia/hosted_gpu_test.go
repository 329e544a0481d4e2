//go:build cuda

package nvidia

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A hostProgram is this process as a host program: it has a stream and memory of its own in the GPU's
// primary context.
type hostProgram struct {
	testing.TB
	gpu    *cuda.Device
	lib    *library // libcuda
	stream uintptr
}

// visit opens the first GPU, or skips, and enters it for the rest of the test.
func visit(t testing.TB) *hostProgram {
	gpu, err := Open(0, nil)
	if err != nil {
		t.Skip(err)
	}
	leave, err := gpu.Enter()
	if err != nil {
		t.Fatal(err)
	}
	g := &hostProgram{TB: t, gpu: gpu}
	if g.lib, err = loadLibrary("libcuda.so.1"); err != nil {
		t.Fatal(err)
	}
	const nonBlocking = 1
	g.must("cuStreamCreate", address(&g.stream), nonBlocking)
	t.Cleanup(func() {
		g.must("cuStreamDestroy_v2", g.stream)
		leave()
		if err := gpu.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// must calls a function of libcuda.
func (g *hostProgram) must(name string, args ...uintptr) {
	g.Helper()
	if code := g.lib.call(name, args...); code != 0 {
		g.Fatalf("%s returns %d", name, code)
	}
}

// memory allocates bytes of the GPU's memory.
func (g *hostProgram) memory(bytes int) uintptr {
	var at uintptr
	g.must("cuMemAlloc_v2", address(&at), uintptr(bytes))
	g.Cleanup(func() { g.must("cuMemFree_v2", at) })
	return at
}

// A matrix has its values in memory of the host program, and a copy of them elsewhere.
type matrix struct {
	*schedule.Matrix
	place          device.Place
	values         []float32
	at, from, copy uintptr
}

// A visited program is one that the host program uses, with another one that runs whole.
type visited struct {
	*hostProgram
	hosted, whole device.Program
	matrices      []*matrix
	works         []device.Work
}

// layOut compiles a pass twice and places all its matrices in the host program's memory.
func (g *hostProgram) layOut(technique string, p rnn.Problem, k, on knob.Params) *visited {
	g.Helper()
	_, s, err := rnn.LayoutHosted(impl.Lookup(technique), p, k)
	if err != nil {
		g.Fatal(err)
	}
	v := &visited{hostProgram: g}
	for _, to := range []*device.Program{&v.hosted, &v.whole} {
		if *to, err = g.gpu.Compile(s, on); err != nil {
			g.Fatal(err)
		}
		g.Cleanup(func() {
			if err := (*to).Close(); err != nil {
				g.Error(err)
			}
		})
	}
	late, paused := map[*schedule.Matrix]bool{}, false
	for op := range s.Operations() {
		_, is := op.(schedule.Pause)
		paused = paused || is
		for a, write := range schedule.Accesses(op) {
			before, known := late[a.M]
			late[a.M] = !write && (before || !known && paused)
		}
	}
	last := s.Parts() - 1
	v.works = make([]device.Work, last+1)
	for i := range v.works {
		v.works[i].Part = i
	}
	v.works[0].Prepare = true
	for _, m := range s.Matrices {
		if m.Private() {
			continue
		}
		x := &matrix{Matrix: m, at: g.memory(4 * m.Elements()), from: g.memory(4 * m.Elements()), copy: g.memory(4 * m.Elements())}
		offsets := make([]int, m.Rows)
		for r := range offsets {
			offsets[r] = (m.Rows - 1 - r) * m.Cols
		}
		if x.place, err = v.hosted.(device.Hosted).Place(m.All(), offsets); err != nil {
			g.Fatal(err)
		}
		move := device.Move{Place: x.place, At: *(*unsafe.Pointer)(unsafe.Pointer(&x.at))}
		first := &v.works[0]
		if late[m] {
			first = &v.works[last]
		}
		first.In = append(first.In, move)
		v.works[last].Out = append(v.works[last].Out, move)
		v.matrices = append(v.matrices, x)
	}
	return v
}

// fill gives all matrices new values, elsewhere.
func (v *visited) fill(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for _, x := range v.matrices {
		x.values = make([]float32, x.Elements())
		turned := make([]float32, len(x.values))
		for i := range x.values {
			x.values[i] = float32(rng.NormFloat64() * 0.3)
			turned[(x.Rows-1-i/x.Cols)*x.Cols+i%x.Cols] = x.values[i]
		}
		v.must("cuMemcpyHtoD_v2", x.from, address(&turned[0]), uintptr(4*len(turned)))
	}
}

// work begins all work on the host program's stream: values arrive, parts run, and results are copied and
// overwritten.
func (v *visited) work() {
	v.Helper()
	for _, x := range v.matrices {
		v.must("cuMemcpyDtoDAsync_v2", x.at, x.from, uintptr(4*x.Elements()), v.stream)
	}
	for _, w := range v.works {
		if err := v.hosted.(device.Hosted).Do(w, v.stream); err != nil {
			v.Fatal(err)
		}
	}
	for _, x := range v.matrices {
		v.must("cuMemcpyDtoDAsync_v2", x.copy, x.at, uintptr(4*x.Elements()), v.stream)
		v.must("cuMemsetD8Async", x.at, 0xff, uintptr(4*x.Elements()), v.stream)
	}
}

// compare waits for the host program's stream and holds its results to a whole run.
func (v *visited) compare() {
	v.Helper()
	v.must("cuStreamSynchronize", v.stream)
	if err := v.hosted.(device.Hosted).Settle(); err != nil {
		v.Fatal(err)
	}
	for _, x := range v.matrices {
		if err := v.whole.Write(x.Matrix, x.values); err != nil {
			v.Fatal(err)
		}
	}
	if err := v.whole.Prepare(); err != nil {
		v.Fatal(err)
	}
	if _, err := v.whole.Run(1); err != nil {
		v.Fatal(err)
	}
	for _, x := range v.matrices {
		want, got := make([]float32, x.Elements()), make([]float32, x.Elements())
		if err := v.whole.Read(x.Matrix, want); err != nil {
			v.Fatal(err)
		}
		v.must("cuMemcpyDtoH_v2", address(&got[0]), x.copy, uintptr(4*len(got)))
		largest := 0.0
		for _, w := range want {
			largest = max(largest, math.Abs(float64(w)))
		}
		for i, w := range want {
			y := got[(x.Rows-1-i/x.Cols)*x.Cols+i%x.Cols]
			if !(math.Abs(float64(y-w)) <= 1e-5*largest) {
				v.Fatalf("element %d of %s is %v, and %v in a whole run", i, x.Name, y, w)
			}
		}
	}
}

// TestGPUHosted holds parts in order with a host program's stream to whole runs: one after the other, and
// as a graph of the host program.
func TestGPUHosted(t *testing.T) {
	for _, c := range []struct {
		technique string
		precision schedule.Precision
		k, on     knob.Params
	}{
		{"cudnnstyle", schedule.FP32, knob.Params{"streams": 4}, nil},
		{"cudnnstyle", schedule.FP32, knob.Params{"streams": 1}, knob.Params{"split": 3}},
		{"cudnnstyle", schedule.FP16, knob.Params{"streams": 4}, knob.Params{"graph": 1}},
		{"persistent", schedule.BF16, nil, nil},
		{"persistent", schedule.FP32, nil, knob.Params{"graph": 1}},
	} {
		t.Run(c.technique+" "+c.precision.String()+" "+c.k.String()+" "+c.on.String(), func(t *testing.T) {
			g := visit(t)
			p := rnn.Problem{Cell: cell.LSTM, Input: 96, Hidden: 256, Layers: 2, Batch: 16, Steps: 20, Pass: rnn.Train, Precision: c.precision}
			v := g.layOut(c.technique, p, c.k, c.on)
			for seed := range uint64(2) {
				v.fill(seed)
				v.work()
				v.compare()
			}
			const global = 0 // as PyTorch captures
			var graph, exec uintptr
			g.must("cuStreamBeginCapture_v2", g.stream, global)
			v.work()
			g.must("cuStreamEndCapture", g.stream, address(&graph))
			g.must("cuGraphInstantiateWithFlags", address(&exec), graph, 0)
			for seed := range uint64(2) {
				v.fill(10 + seed)
				g.must("cuGraphLaunch", exec, g.stream)
				v.compare()
			}
			g.must("cuGraphExecDestroy", exec)
			g.must("cuGraphDestroy", graph)
			v.fill(20) // work of its own after the graph
			v.work()
			v.compare()
		})
	}
}

// TestGPUContext: what is current on a thread stays so, and devices that are opened and closed leave
// no memory behind.
func TestGPUContext(t *testing.T) {
	g := visit(t)
	free := func() (bytes uint64) {
		var all uint64
		g.must("cuMemGetInfo_v2", address(&bytes), address(&all))
		return bytes
	}
	var before, after uintptr
	g.must("cuCtxGetCurrent", address(&before))
	var first uint64
	for i := range 6 {
		d, err := Open(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("open", func(t *testing.T) {
			leave, err := d.Enter() // tests of tests have threads of their own
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(leave)
			one := &hostProgram{TB: t, gpu: d, lib: g.lib, stream: g.stream}
			v := one.layOut("cudnnstyle", rnn.Problem{Cell: cell.LSTM, Input: 8, Hidden: 16, Layers: 1, Batch: 2, Steps: 3, Pass: rnn.Train}, nil, nil)
			v.fill(1)
			v.work()
			v.compare()
		})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		g.must("cuCtxGetCurrent", address(&after))
		if after != before {
			t.Errorf("context %#x became %#x", before, after)
		}
		if i == 1 { // libraries keep some memory after their first use
			first = free()
		}
	}
	if last := free(); last+1<<20 < first {
		t.Errorf("%d bytes are free after the second device, and %d after the last", first, last)
	}
	done := make(chan uintptr)
	go func() { // on a thread where nothing is current
		var now uintptr
		leave, err := g.gpu.Enter()
		if err != nil {
			t.Error(err)
		} else {
			leave()
		}
		g.lib.call("cuCtxGetCurrent", address(&now))
		done <- now
	}()
	if now := <-done; now != 0 && now != before {
		t.Errorf("Enter leaves context %#x", now)
	}
}

// BenchmarkGPUDo measures the host's time for a call, and the GPU's time beyond that of a run: rows
// in, a small forward pass, rows out.
func BenchmarkGPUDo(b *testing.B) {
	for _, on := range []knob.Params{{"graph": 0}, {"graph": 1}} {
		b.Run(on.String(), func(b *testing.B) {
			g := visit(b)
			v := g.layOut("persistent", rnn.Problem{Cell: cell.LSTM, Input: 256, Hidden: 256, Layers: 1, Batch: 16, Steps: 32, Precision: schedule.BF16}, nil, on)
			v.fill(1)
			v.work()
			v.compare()
			w := v.works[0]
			w.Prepare, w.In, w.Out = false, w.In[len(w.In)-1:], w.Out[len(w.Out)-1:]
			p := v.hosted.(device.Hosted)
			host := time.Duration(0)
			b.ReportAllocs()
			b.ResetTimer()
			start := time.Now()
			for range b.N {
				began := time.Now()
				leave, err := g.gpu.Enter()
				if err == nil {
					err = p.Do(w, g.stream)
				}
				if err != nil {
					b.Fatal(err)
				}
				leave()
				host += time.Since(began)
			}
			if err := p.Settle(); err != nil {
				b.Fatal(err)
			}
			all := time.Since(start)
			b.StopTimer()
			run, err := v.whole.Run(b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(host.Seconds()*1e6/float64(b.N), "µs/call")
			b.ReportMetric((all-run.Wall).Seconds()*1e6/float64(b.N), "µs/more-than-run")
		})
	}
}
