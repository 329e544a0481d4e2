package cpu_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// BenchmarkInterpreter times layers of built-in cells with and without their assembly, in turns, and
// reports how many times as fast the assembly is.
func BenchmarkInterpreter(b *testing.B) {
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, tech := range impl.Direct() {
		if tech.Name() == "naive" || tech.Name() == "scc" {
			continue // they run cells operation by operation
		}
		for _, c := range cell.All() {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				for _, size := range [][2]int{{16, 1}, {16, 64}, {32, 1}, {64, 1}, {64, 16}, {128, 1}, {256, 1}, {256, 16}, {512, 1}, {1024, 4}, {2048, 1}} {
					p := rnn.Problem{Cell: c, Input: size[0], Hidden: size[0], Layers: 1, Batch: size[1], Steps: steps(size), Pass: pass}
					known, err := start(d, tech, p)
					if err != nil {
						continue
					}
					p.Cell = unassembled(c)
					unknown, err := start(d, tech, p)
					if err != nil {
						b.Fatal(err)
					}
					name := fmt.Sprintf("%s/%v/%v/%dx%d", tech.Name(), strings.ReplaceAll(c.Name, " ", "-"), pass, size[0], size[1])
					b.Run(name, func(b *testing.B) { inTurns(b, known, unknown) })
					known.Close()
					unknown.Close()
				}
			}
		}
	}
}

// steps returns as many steps as make a run of a few milliseconds.
func steps(size [2]int) int { return min(256, max(8, 1<<24/(size[0]*size[0]*size[1]))) }

func start(d *cpu.Device, tech rnn.Technique, p rnn.Problem) (device.Program, error) {
	plan, s, err := rnn.Layout(tech, p, knob.Params{})
	if err != nil {
		return nil, err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return nil, err
	}
	if err := plan.Write(prog, rnn.NewData(p, 1, 1, "normal")); err != nil {
		return nil, err
	}
	if err := prog.Prepare(); err != nil {
		return nil, err
	}
	_, err = prog.Run(2)
	return prog, err
}

func inTurns(b *testing.B, first, second device.Program) {
	least := [2]float64{math.Inf(1), math.Inf(1)}
	for b.Loop() {
		for i, prog := range []device.Program{first, second} {
			s, err := prog.Run(1)
			if err != nil {
				b.Fatal(err)
			}
			least[i] = min(least[i], s.Wall.Seconds())
		}
	}
	b.ReportMetric(least[1]/least[0], "times-as-fast")
	b.ReportMetric(1e6*least[0], "assembly-µs")
	b.ReportMetric(1e6*least[1], "interpreter-µs")
	b.ReportMetric(0, "ns/op")
}
