package impl_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// resident returns the resident memory of this process, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestMemoryIsPredicted: what a device says that it will allocate is within a tenth of what the
// process grows by.
func TestMemoryIsPredicted(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes minutes without assembly, and the race detector's own memory would count")
	}
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tech := range impl.Direct() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := rnn.Problem{Cell: cell.LSTM, Pass: pass, Input: 256, Hidden: 256, Layers: 4, Batch: 256, Steps: 12}
			if tech.Name() == "scan" {
				p.Cell = cell.LSLSTM // it declines an LSTM
			}
			_, s, err := rnn.Layout(tech, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Memory(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			before := resident(t)
			prog, err := d.Compile(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range s.Matrices { // first use is what takes memory
				if !m.Private() {
					if err := prog.Write(m, make([]float32, m.Elements())); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := prog.Run(1); err != nil {
				t.Fatal(err)
			}
			got := resident(t) - before
			const runtime = 4 << 20 // what the Go heap grows by meanwhile
			if off := got - want; off < -want/10 || off > want/10+runtime {
				t.Errorf("%s %v: takes %d MiB, predicted %d MiB", tech.Name(), pass, got>>20, want>>20)
			} else {
				t.Logf("%s %v: takes %d MiB, predicted %d MiB", tech.Name(), pass, got>>20, want>>20)
			}
			if err := prog.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
