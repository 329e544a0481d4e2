package tuner_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A weighing device notes the largest size of the heap at any call, garbage included, and the bytes
// of the matrices, which the CPU keeps beside the heap.
type weighing struct {
	device.Device
	most     *uint64
	matrices *int64
}

func (d weighing) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*d.most = max(*d.most, m.HeapAlloc)
}

func (d weighing) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	for _, m := range s.Matrices {
		*d.matrices += 4 * int64(m.Elements())
	}
	d.look()
	p, err := d.Device.Compile(s, k)
	d.look()
	if err != nil {
		return nil, err
	}
	return weighed{p, d}, nil
}

type weighed struct {
	device.Program
	weighing
}

func (p weighed) Write(m *schedule.Matrix, src []float32) error {
	p.look()
	return p.Program.Write(m, src)
}

func (p weighed) Read(m *schedule.Matrix, dst []float32) error {
	p.look()
	return p.Program.Read(m, dst)
}

func (p weighed) Run(n int) (device.Sample, error) {
	p.look()
	return p.Program.Run(n)
}

func (p weighed) Close() error { return p.Program.Close() }

// TestNeed: techniques, alone or side by side, take at most the memory that their layouts say, and not
// far less. Much of it is garbage that checks leave between samples.
func TestNeed(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1e8)
	tuner.SetRechecks(t, 1e9, 2)
	m := quick()
	m.Rounds, m.MaxRounds = 3, 3
	for _, c := range []struct {
		point      string
		techniques []string
	}{
		{"rnn-relu train H=32 B=64 T=100 L=2 I=256 O=50 fp32", []string{"persistent"}},
		{"gilr train H=256 B=16 T=40 L=3 I=32 O=0 fp32", []string{"scan"}},
		{"lstm train H=256 B=16 T=34 L=2 I=128 O=0 bf16", []string{"persistent"}},
		{"sru train H=128 B=32 T=40 L=2 I=128 O=0 fp32", []string{"naive", "cudnnstyle", "scan"}},
		{"gilr forward H=8 B=1 T=20000 L=1 I=8 O=0 fp32", []string{"scan"}},
		{"gru forward H=800 B=2 T=3 L=1 I=64 O=0 fp32", []string{"cudnnstyle"}},
		{"lstm train H=600 B=2 T=3 L=1 I=64 O=0 fp32", []string{"scc"}},
		{"qrnn train H=256 B=2 T=100 L=1 I=256 O=50 fp32", []string{"naive"}},
	} {
		t.Run(c.point, func(t *testing.T) {
			var p record.Point
			if _, err := fmt.Sscanf(c.point, "%s %s H=%d B=%d T=%d L=%d I=%d O=%d %s", &p.Cell, &p.Pass, &p.Hidden, &p.Batch, &p.Steps, &p.Layers, &p.Input, &p.Output, &p.Precision); err != nil {
				t.Fatal(err)
			}
			most, matrices := uint64(0), int64(0)
			s := &tuner.Sweep{Device: weighing{open(t), &most, &matrices}, Settings: m, Techniques: impl.All()}
			own, shared := int64(0), int64(0)
			for _, spec := range specs(t, c.techniques...) {
				l, err := tuner.LayOut(s.Device, s.Techniques, p, spec)
				if err != nil || l.Reason != "" {
					t.Fatal(l.Reason, err)
				}
				own, shared = own+l.Own(), max(shared, l.Shared())
			}
			var base runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&base)
			recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, c.techniques...))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs {
				if r.Status != record.OK {
					t.Fatalf("%s: %s, %s", r.Impl.Label, r.Status, *r.Reason)
				}
			}
			need, took := float64(own+shared)/1e6, (float64(most-base.HeapAlloc)+float64(matrices))/1e6
			if took > need || need > 2.5*took {
				t.Errorf("it took %.1f MB, and %.1f MB is said to be the most", took, need)
			}
		})
	}
}
