// Package explain describes a layout: its operations and bounds and, where the device chooses among
// kernels, which kernel runs and why. Only Measure runs it.
package explain

import (
	"errors"
	"fmt"
	"slices"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// An Explanation describes a layout.
type Explanation struct {
	Point       record.Point `json:"point"`
	Impl        string       `json:"impl"`
	Label       string       `json:"label"`
	Knobs       knob.Params  `json:"knobs"`
	Declined    *string      `json:"declined"`
	FLOPs       int64        `json:"flops"`
	Executed    int64        `json:"flops_executed"`
	Traffic     int64        `json:"bytes"`
	Memory      int64        `json:"mem_bytes"`
	Streams     int          `json:"streams"`
	Operations  int          `json:"ops"`
	Waits       int          `json:"waits"`
	Prepared    int          `json:"prepare_ops"`
	Kinds       []Kind       `json:"kinds"`
	Critical    int64        `json:"critical_flops"`
	Chain       int          `json:"critical_ops"`
	Parallelism float64      `json:"parallelism"`
	Peak        *float64     `json:"peak_flops_per_s"`
	Copy        *float64     `json:"copy_bytes_per_s"`
	AtPeak      *float64     `json:"at_peak_s"`
	AtCopy      *float64     `json:"at_copy_s"`

	Interpreted []string `json:"interpreted"` // cells that the device has no compiled code for

	Call     *Call             `json:"call"`    // null: a run is a whole sequence
	Kernels  []record.Kernel   `json:"kernels"` // null: the device does not say
	Choices  []Choice          `json:"choices"`
	Expected *record.Predicted `json:"expected"` // time of a run's persistent kernels
	Floor    *Floor            `json:"floor"`    // null: the machine is unknown, or another program computes
	Passes   []Pass            `json:"passes"`
	Measured *Measured         `json:"measured"` // null: it was not run

	Predicted *model.Bands `json:"predicted"` // a step by the model; null: not persistent, or the device chooses among kernels
	Settings  string       `json:"-"`         // the technique with its settings that are not defaults
}

// A Kind counts the operations of one kind.
type Kind struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	FLOPs int64  `json:"flops"`
	Bytes int64  `json:"bytes"`
}

// A Choice is the choice of a kernel for a layer, or for Count equal layers.
type Choice struct {
	Layer  string   `json:"layer"`
	Count  int      `json:"count"`
	Steps  int      `json:"steps"`
	Runs   Option   `json:"runs"`
	Others []Option `json:"others"` // the fastest predicted first, then those that knobs rule out, last those that do not fit
}

// An Option is a kernel variant that could run a layer, in its best configuration.
type Option struct {
	Variant  string   `json:"variant"`
	Exchange string   `json:"exchange"`
	Group    *string  `json:"group"`  // the blocks that share one copy of the weights; null: it does not fit
	Source   *string  `json:"source"` // the file of its kernel, and the function in it
	Config   *string  `json:"config"` // null: it does not fit
	Cycles   *float64 `json:"cycles"` // predicted for a step; null: no model covers it
	Step     *float64 `json:"step_s"`
	Start    *float64 `json:"start_s"` // predicted for the kernel besides its steps
	Floor    *float64 `json:"floor_s"` // of a step's exchange
	Why      *string  `json:"why"`     // null: the predicted time alone decides
}

// A Pass is what one pass of lowering found.
type Pass struct {
	Name  string   `json:"name"`
	Found []string `json:"found"`
}

// New explains l on d. limits are d's measured rates.
func New(l *tuner.Layout, d device.Device, limits device.Limits) (*Explanation, error) {
	e := &Explanation{Point: l.Point, Impl: l.Spec.Name, Label: l.Spec.Label, Knobs: l.Settings(), FLOPs: l.Problem.FLOPs(), Kinds: []Kind{}, Choices: []Choice{}, Passes: []Pass{}, Interpreted: []string{}}
	if l.Reason != "" {
		e.Declined = &l.Reason
		if l.Schedule != nil && l.Code == record.ReasonResource { // the device says what does not fit
			return e, e.choose(l, d)
		}
		return e, nil
	}
	s := l.Schedule.Summarize()
	e.Executed, e.Traffic, e.Memory, e.Streams = s.FLOPs, s.Traffic, l.Memory, l.Schedule.Streams
	e.Operations, e.Waits, e.Prepared = s.Nodes, s.Waits, len(l.Schedule.Prepare)
	if i, ok := d.(device.Interpreter); ok {
		e.Interpreted = append(e.Interpreted, i.Interpreted(l.Schedule)...)
	}
	e.Critical, e.Chain, e.Call = s.Critical, s.Chain, callOf(l)
	e.Parallelism = float64(s.FLOPs) / float64(max(1, s.Critical))
	for _, k := range s.Kinds {
		e.Kinds = append(e.Kinds, Kind{k.Name, k.Count, k.FLOPs, k.Bytes})
	}
	if rate, _ := tuner.Peak(limits, d.Info().Key, l.Point.Precision); rate > 0 {
		t := float64(s.FLOPs) / rate
		e.Peak, e.AtPeak = &rate, &t
	}
	if rate := limits.Copy; rate > 0 && !slices.Contains(limits.Unsure, device.LimitCopy) {
		t := float64(s.Traffic) / rate
		e.Copy, e.AtCopy = &rate, &t
	}
	return e, e.choose(l, d)
}

// choose adds d's kernels and choices, if d can explain them.
func (e *Explanation) choose(l *tuner.Layout, d device.Device) error {
	x, ok := d.(device.Explainer)
	if !ok {
		return nil
	}
	found, err := x.Explain(l.Schedule, l.DeviceKnobs)
	if errors.Is(err, schedule.ErrUnsupported) {
		why := err.Error()
		e.Declined = &why
	} else if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if found.Kernels != nil {
		e.Kernels, e.Expected = tuner.Kernels(found.Kernels), tuner.Predicted(found.Kernels)
	}
	for _, c := range found.Choices {
		out := Choice{Layer: c.Layer, Count: c.Count, Steps: c.Steps, Runs: option(c.Runs), Others: []Option{}}
		for _, o := range c.Others {
			out.Others = append(out.Others, option(o))
		}
		e.Choices = append(e.Choices, out)
	}
	for _, p := range found.Passes {
		if p.Found == nil {
			p.Found = []string{}
		}
		e.Passes = append(e.Passes, Pass(p))
	}
	return nil
}

func option(o device.Option) Option {
	return Option{Variant: o.Variant, Exchange: o.Exchange, Group: orNil(o.Group), Source: orNil(o.Source), Config: orNil(o.Config), Cycles: orNil(o.Cycles), Step: orNil(o.Step), Start: orNil(o.Start), Floor: orNil(o.Floor), Why: orNil(o.Why)}
}

// orNil is a pointer to v, or nil where v is zero, which stands for unknown.
func orNil[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
