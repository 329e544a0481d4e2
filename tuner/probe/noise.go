package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// Noise says how much samples of the same work differ.
type Noise struct {
	Samples int     `json:"bursts"`
	Sample  float64 `json:"burst_s"`
	// Half the distance of the quartiles, and the distance of the slowest and the fastest sample.
	// Both are shares of the median.
	Quartiles float64  `json:"quartiles"`
	Range     float64  `json:"range"`
	HalfWidth float64  `json:"ci_of_10"` // half-width of the interval of ten samples' median, a share
	Warnings  []string `json:"warnings"`
}

// Listen times the same short work, runs of prog, again and again.
func Listen(ctx context.Context, prog device.Program) (Noise, error) {
	const count, length = 40, 20 * time.Millisecond
	runs := 1
	for { // find how many runs make a sample
		sample, err := prog.Run(runs)
		if err != nil {
			return Noise{}, err
		}
		if sample.Wall >= length || runs >= 1<<20 {
			break
		}
		runs *= 2
	}
	var samples []float64
	for range count {
		if err := ctx.Err(); err != nil {
			return Noise{}, err
		}
		sample, err := prog.Run(runs)
		if err != nil {
			return Noise{}, err
		}
		samples = append(samples, sample.Wall.Seconds())
	}
	s, warnings := record.Summarize(samples, 0)
	n := Noise{Samples: count, Sample: s.Median, Warnings: append([]string{}, warnings...)}
	n.Quartiles, n.Range = (s.Q3-s.Q1)/2/s.Median, (s.Max-s.Min)/s.Median
	for i := 0; i+10 <= count; i += 10 {
		ten, _ := record.Summarize(samples[i:i+10], 0)
		if w, ok := ten.HalfWidth(); ok {
			n.HalfWidth = max(n.HalfWidth, w)
		}
	}
	return n, nil
}

// Advice says what to do about noise.
func (n Noise) Advice() []record.Advice {
	var list []record.Advice
	if target := config.Default().TargetCI; n.HalfWidth > target {
		remedy := "stop other programs and use --effort rigorous"
		if percent := math.Round(100*n.HalfWidth + 1); percent < 100 { // a target is below 100 %
			remedy = fmt.Sprintf("stop other programs, use --effort rigorous, or accept --target-ci %.0f%%", percent)
		}
		list = append(list, record.Advice{
			What:   fmt.Sprintf("the median of ten samples has an interval of ±%s; the target is ±%.0f %%", quantity.Half(n.HalfWidth), 100*target),
			Remedy: remedy,
		})
	}
	if slices.Contains(n.Warnings, record.WarnBimodal) {
		list = append(list, record.Advice{What: "samples fall into a fast group and a slow group",
			Remedy: "check for clock changes or another program on the same cores; taskset moves rnnbench to other cores"})
	}
	if slices.Contains(n.Warnings, record.WarnDrift) {
		list = append(list, record.Advice{What: "samples drift over time", Remedy: "let the machine reach a steady temperature, or use --warmup 1s"})
	}
	return list
}
