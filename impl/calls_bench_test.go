package impl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// BenchmarkCalls times calls of one step in three ways that take turns: calls made by the first
// worker, calls that wake the workers each time, and runs back to back, which is the work itself.
func BenchmarkCalls(b *testing.B) {
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, tech := range []string{"persistent", "cudnnstyle", "naive"} {
		for _, hidden := range []int{16, 32, 64, 128, 256, 512, 1024} {
			for _, batch := range []int{1, 4, 16} {
				p := rnn.Problem{Cell: cell.LSTM, Input: hidden, Hidden: hidden, Layers: 1, Batch: batch, Steps: 1, Calls: 1000}
				b.Run(fmt.Sprintf("impl=%s/hidden=%d/batch=%d", tech, hidden, batch), func(b *testing.B) { callsInTurns(b, d, p, tech) })
			}
		}
	}
}

// waking hides that a program can make calls itself.
type waking struct{ device.Program }

func callsInTurns(b *testing.B, d *cpu.Device, p rnn.Problem, tech string) {
	plan, s, err := rnn.Layout(impl.Lookup(tech), p, nil)
	if err != nil {
		b.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer prog.Close()
	data := rnn.NewData(p.Sequence(), 1, 1, "normal")
	if err := errors.Join(plan.Write(prog, data.Cut(p)), prog.Prepare()); err != nil {
		b.Fatal(err)
	}
	out, n := rnn.CallOutput(plan)
	calls := device.Calls{In: plan.Given, Inputs: rnn.CallInputs(plan, data, 1<<16), Each: plan.Given.Elements(), Out: out, Read: n, N: 100}
	const back = 50
	var near, far, work []time.Duration
	for b.Loop() {
		some, err := device.Call(prog, calls)
		if err != nil {
			b.Fatal(err)
		}
		near = append(near, some.Wall...)
		if some, err = device.Call(waking{prog}, calls); err != nil {
			b.Fatal(err)
		}
		far = append(far, some.Wall...)
		sample, err := prog.Run(back)
		if err != nil {
			b.Fatal(err)
		}
		work = append(work, sample.Wall/back)
	}
	report := func(name string, times []time.Duration, at float64) {
		slices.Sort(times)
		b.ReportMetric(float64(times[int(at*float64(len(times)-1))].Nanoseconds())/1e3, name)
	}
	report("p50-µs", near, 0.5)
	report("p99-µs", near, 0.99)
	report("waking-p50-µs", far, 0.5)
	report("waking-p99-µs", far, 0.99)
	report("work-µs", work, 0)
}
