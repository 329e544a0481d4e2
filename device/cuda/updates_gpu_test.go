package cuda_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// The language models of Hwang & Sung: words, distinct words, and words of two minibatches.
const (
	words   = 38000
	classes = 20000
	named   = 2048
)

// BenchmarkGPUUpdates times the operations of an iteration of hwang-train other than products, one
// by one. Rows are those of a table of words, for one gate of 512 units and for four.
func BenchmarkGPUUpdates(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, c := range []struct {
		name string
		cols int
	}{{"elman", 512}, {"lstm", 2048}} {
		build := func(add func(u *updating, x, table, grad, weights, dweights schedule.View)) (*schedule.Schedule, *schedule.Matrix) {
			u := newUpdating(true)
			x := u.Matrix("x", named, 1)
			place := func(name string, rows, cols int) schedule.View { return u.place(name, rows, cols, false) }
			add(u, x.All(), place("table", words, c.cols), place("grad", words, c.cols), place("weights", classes, 512), place("dweights", classes, 512))
			s, err := u.Schedule()
			if err != nil {
				b.Fatal(err)
			}
			return s, x
		}
		for _, op := range []struct {
			name string
			add  func(u *updating, x, table, grad, weights, dweights schedule.View)
		}{
			{"squares", func(u *updating, x, _, grad, _, dweights schedule.View) {
				u.Do(0, schedule.Squares{A: grad, Out: u.Matrix("bands", 1, 660).All(), Rows: x})
				u.Do(0, schedule.Squares{A: dweights, Out: u.Matrix("more bands", 1, 350).All()})
			}},
			{"update", func(u *updating, _, _, _, weights, dweights schedule.View) {
				u.Do(0, schedule.Update{Param: weights, Grad: dweights, Rates: u.rates, Squares: u.squares})
			}},
			{"update rows", func(u *updating, x, table, grad, _, _ schedule.View) {
				u.Do(0, schedule.Update{Param: table, Grad: grad, Rates: u.rates, Squares: u.squares, Rows: x})
			}},
			{"scatter", func(u *updating, x, _, grad, _, _ schedule.View) {
				u.Do(0, schedule.Scatter{Index: x, Src: u.place("errors", named, c.cols, false), Table: grad})
			}},
			{"zero", func(u *updating, _, _, grad, _, _ schedule.View) {
				u.Do(0, schedule.Map{Op: cell.Zero, Out: grad})
			}},
		} {
			b.Run(c.name+"/"+op.name, func(b *testing.B) {
				s, x := build(op.add)
				p, err := d.Compile(s, knob.Params{})
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				if err := p.Write(x, frequent()); err != nil {
					b.Fatal(err)
				}
				best := math.Inf(1)
				for range b.N {
					sample, err := p.Run(20)
					if err != nil {
						b.Fatal(err)
					}
					best = min(best, sample.Device.Seconds()/20)
				}
				b.ReportMetric(best*1e6, "µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// frequent returns the words of a text, in which words with low numbers are frequent.
func frequent() []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	list := make([]float32, named)
	for i := range list {
		list[i] = float32(int(math.Exp(rng.Float64()*math.Log(words))) - 1)
	}
	return list
}
