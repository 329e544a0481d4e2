// Package synthetic generates records for tests of figures and tables. Times come from a simple
// machine model, so that curves bend as measured ones do.
package synthetic

import (
	"fmt"
	"math"
	"time"

	"rnnbench/record"
)

// Peak and Copy are the rates of the synthetic machine, in FLOP/s and bytes/s.
const (
	Peak = 5.8e12
	Copy = 250e9
)

// A Machine numbers the records that it generates and adds noise to their times.
type Machine struct {
	seq   int
	state uint64
}

// noise returns a uniform random number in [-1, 1). Every machine gets the same sequence.
func (m *Machine) noise() float64 {
	m.state = m.state*6364136223846793005 + 1442695040888963407
	return float64(m.state>>11)/(1<<52) - 1
}

// Point returns a forward pass of a four-layer LSTM in fp32.
func Point(hidden, batch, steps int) record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Batch: batch, Steps: steps, Layers: 4, Precision: "fp32"}
}

// Record generates the record of a technique at a point. overhead is in seconds per step; share is
// the share of the peak that the technique reaches on large work.
func (m *Machine) Record(p record.Point, label string, overhead, share float64) record.Record {
	flops := 16 * float64(p.Hidden) * float64(p.Hidden) * float64(p.Batch) * float64(p.Steps) * float64(p.Layers)
	weights := 32 * float64(p.Hidden) * float64(p.Hidden)
	steps := float64(p.Steps) * float64(p.Layers)
	bytes := steps * (weights + 40*float64(p.Hidden)*float64(p.Batch))
	if label == "persistent" {
		bytes = weights*float64(p.Layers) + steps*40*float64(p.Hidden)*float64(p.Batch)
	}
	fill := float64(p.Batch) / (float64(p.Batch) + 24)
	t := steps*overhead + math.Max(flops/(Peak*share*fill), bytes/Copy*0.5)
	return m.timed(p, label, t, int64(flops), int64(bytes))
}

func (m *Machine) timed(p record.Point, label string, t float64, flops, bytes int64) record.Record {
	m.seq++
	t *= 1 + 0.02*m.noise()
	const n = 10
	samples := record.Samples{}
	for range n {
		samples.Wall = append(samples.Wall, t*(1+0.01*m.noise()))
		samples.Device = append(samples.Device, t*(1+0.008*m.noise()))
		samples.Iters = append(samples.Iters, 20)
	}
	width := 0.004 + 0.02*math.Abs(m.noise())
	lo, hi, peak, stdev := t*(1-width), t*(1+width*0.8), Peak, t*width
	percent := 100 * float64(flops) / t / peak
	return record.Record{
		Schema: record.Schema, Run: "synthetic", Seq: m.seq, Time: time.Date(2026, 1, 2, 3, 4, m.seq%60, 0, time.UTC),
		Point:   p,
		Impl:    record.Impl{Name: label, Label: label, Knobs: map[string]int{"tile": 64}, Streams: 1},
		Device:  "synthetic machine, 2 threads",
		Mode:    record.Mode{Order: "interleaved", Cache: "hot", Timer: "event", Data: "normal", Seed: 1},
		Status:  record.OK,
		Work:    record.Work{Model: "products", Flops: flops, Executed: flops, Bytes: bytes, Memory: bytes / 3, Ops: 100, Waits: 3},
		Samples: &samples,
		Stats: &record.Stats{N: n, Min: lo, Q1: lo, Median: t, Q3: hi, Max: hi, Mean: t, Stdev: &stdev, Lo: &lo, Hi: &hi,
			Level: 0.978, Stop: "target_ci"},
		Rate: &record.Rate{Flops: float64(flops) / t, Bytes: float64(bytes) / t, Peak: &peak, Percent: &percent, Source: "measured"},
	}
}

// Fail returns r without its result, with a status and its reason.
func Fail(r record.Record, status record.Status, code, reason string) record.Record {
	r.Status, r.ReasonCode, r.Reason = status, &code, &reason
	r.Samples, r.Stats, r.Rate = nil, nil, nil
	return r
}

// A technique is a name with the two parameters of the model.
type technique struct {
	name            string
	overhead, share float64
}

func techniques() []technique {
	return []technique{{"naive", 60e-6, 0.35}, {"cudnnstyle", 14e-6, 0.75}, {"persistent", 4e-6, 0.55}, {"scan", 9e-6, 0.3}, {"scc", 20e-6, 0.6}}
}

// Sweep returns records over hidden size, batch and technique. The persistent technique does not
// fit the machine from 2048 units on.
func Sweep(hidden, batch []int) []record.Record {
	m := &Machine{state: 1}
	var recs []record.Record
	for _, b := range batch {
		for _, h := range hidden {
			for _, t := range techniques() {
				r := m.Record(Point(h, b, 100), t.name, t.overhead, t.share)
				switch {
				case t.name == "persistent" && h >= 2048:
					r = Fail(r, record.Skipped, record.ReasonResource, fmt.Sprintf("the recurrent matrix takes %d MiB, and the device holds 30", 16*h*h>>20))
				case t.name == "scan" && h >= 4096 && b >= 128:
					r = Fail(r, record.Failed, record.ReasonOOM, "out of memory: 18.2 GiB asked for, 11.9 GiB free")
				case t.name == "scan" && h == 512:
					r.Warnings = []string{record.WarnNoisy, record.WarnDrift}
				}
				recs = append(recs, r)
			}
		}
	}
	return recs
}

// Stages returns the stages of Appleyard's Table 1 as labels of one technique.
func Stages() []string {
	return []string{"0 naive", "1 grouped", "2 streamed", "3 fused", "4 transposed", "5 inputs batched", "6 layers overlapped"}
}

// Ladder returns records of the stages at one point.
func Ladder(hidden, batch int) []record.Record {
	m := &Machine{state: 7}
	var recs []record.Record
	for i, overhead := range []float64{700e-6, 420e-6, 250e-6, 120e-6, 110e-6, 112e-6, 60e-6} {
		r := m.Record(Point(hidden, batch, 100), Stages()[i], overhead, 0.5+0.05*float64(i))
		r.Impl.Name = "cudnnstyle"
		r.Impl.Knobs = map[string]int{"stage": i}
		recs = append(recs, r)
	}
	return recs
}

// Streams returns records of Hwang and Sung's experiment: batch times steps is constant.
func Streams() []record.Record {
	m := &Machine{state: 3}
	var recs []record.Record
	for b := 1; b <= 1024; b *= 2 {
		for _, t := range techniques()[:1] {
			recs = append(recs, m.Record(Point(1024, b, 1024/b), t.name, t.overhead, t.share))
		}
		recs = append(recs, m.Record(Point(1024, b, 1024/b), "scc", 60e-6/float64(1+8/b), 0.4))
	}
	return recs
}
