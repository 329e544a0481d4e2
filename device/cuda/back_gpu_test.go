package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// places are the divisions that BenchmarkGPUGradients tries, by their rank: the default, and some
// that are predicted to be slower.
var places = []int{0, 1, 2, 3, 5, 8}

// BenchmarkGPUGradients times the gradient of layers on the first GPU, in the default division and
// in others, all held to double precision first.
func BenchmarkGPUGradients(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, long := range trained() {
		weights := driver.Single
		if long.Precision == schedule.BF16 {
			weights = driver.Brain
		}
		texts := cuda.Gradients(long.Cell, long.Hidden, long.Batch, weights, nil, h200())
		short := long
		short.Steps = 3
		s, err := short.Schedule(1)
		if err != nil {
			b.Fatal(err)
		}
		var settings []knob.Params
		for _, at := range places {
			if at < len(texts) {
				settings = append(settings, knob.Params{"back": at})
				d.Precompile(s, settings[len(settings)-1])
			}
		}
		b.Run(long.String(), func(b *testing.B) {
			short.HoldWith(b, d, settings)
			for _, k := range settings {
				b.Run(fmt.Sprint(k["back"]), func(b *testing.B) {
					b.Log(texts[k["back"]])
					gradient(b, d, long, k)
				})
			}
		})
	}
}

// gradient times a layer with random weights that let gradients fade.
func gradient(b *testing.B, d device.Device, l devicetest.Layer, k knob.Params) {
	s, err := l.Schedule(1)
	if err != nil {
		b.Fatal(err)
	}
	p, err := d.Compile(s, k)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range s.Matrices {
		if m.Private() {
			continue
		}
		v := make([]float32, m.Elements())
		for i := range v {
			v[i] = 0.05 * (rng.Float32() - 0.5)
		}
		if err := p.Write(m, v); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Prepare(); err != nil {
		b.Fatal(err)
	}
	if _, err := p.Run(3); err != nil {
		b.Fatal(err)
	}
	t, err := p.Run(b.N)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(t.Device.Seconds()/float64(b.N*l.Steps)*1e6, "µs/step")
}
