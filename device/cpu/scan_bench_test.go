package cpu_test

import (
	"fmt"
	"slices"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// BenchmarkScan times the bare recurrence, h = a∘h + x, beside a plain copy, in bytes per second
// that it must read and write. It runs on one worker, and on all workers that split channels or
// time. The size is steps × channels.
func BenchmarkScan(b *testing.B) {
	for _, size := range [][2]int{{65536, 256}, {524288, 32}, {1 << 20, 16}, {16384, 1024}, {1024, 256}, {65536, 16}} {
		for _, train := range []bool{false, true} {
			r := newRecurrence(b, size[0], 1, size[1], train)
			pass := map[bool]string{false: "forward", true: "both"}[train]
			for _, way := range []struct {
				name    string
				threads int
				knobs   knob.Params
			}{{"one", 1, nil}, {"channels", 2, knob.Params{"scansplit": 1, "scanworkers": 2}}, {"time", 2, knob.Params{"scansplit": 2, "scanworkers": 2}}, {"chosen", 2, nil}} {
				b.Run(fmt.Sprintf("%dx%d/%s/%s", size[0], size[1], pass, way.name), func(b *testing.B) {
					d, err := cpu.Open(cpu.Options{Threads: way.threads})
					if err != nil {
						b.Fatal(err)
					}
					defer d.Close()
					r.time(b, d, way.knobs)
				})
			}
		}
	}
}

// BenchmarkCopy measures the rate to compare with.
func BenchmarkCopy(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			d, err := cpu.Open(cpu.Options{Threads: threads})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			var best float64
			for b.Loop() {
				l, err := d.Limits()
				if err != nil {
					b.Fatal(err)
				}
				best = max(best, l.Copy)
			}
			b.ReportMetric(best/1e9, "GB/s")
		})
	}
}

func (r *recurrence) time(b *testing.B, d *cpu.Device, k knob.Params) {
	prog, err := d.Compile(r.s, k)
	if err != nil {
		b.Fatal(err)
	}
	defer prog.Close()
	for _, m := range []*schedule.Matrix{r.x, r.dh} {
		if m == nil {
			continue
		}
		v := make([]float32, m.Elements())
		for i := range v {
			v[i] = 0.5
		}
		if err := prog.Write(m, v); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := prog.Run(1); err != nil { // allocates the memory
		b.Fatal(err)
	}
	var seconds []float64
	for b.Loop() {
		sample, err := prog.Run(1)
		if err != nil {
			b.Fatal(err)
		}
		seconds = append(seconds, sample.Wall.Seconds())
	}
	slices.Sort(seconds)
	b.ReportMetric(float64(r.s.Traffic())/seconds[len(seconds)/2]/1e9, "GB/s")
	b.ReportMetric(float64(r.s.Traffic())/seconds[0]/1e9, "best-GB/s")
	b.ReportMetric(0, "ns/op")
}
