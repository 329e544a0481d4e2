package bench

import (
	"context"
	"strings"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/explain"
)

// Explaining says what explanations measure.
type Explaining struct {
	Limits bool // the device's peaks
	Bands  bool // its memories, to predict steps of persistent techniques
	Run    bool // the time of each operation, by settings
}

// Explain explains layouts.
func Explain(ctx context.Context, b *Bench, layouts []*tuner.Layout, o Explaining, m config.Measure) ([]*explain.Explanation, error) {
	if o.Limits {
		if err := b.MeasureLimits(); err != nil {
			return nil, err
		}
	}
	var all []*explain.Explanation
	for _, l := range layouts {
		e, err := explain.New(l, b.Device, b.Limits)
		if err != nil {
			return nil, err
		}
		e.Settings = FormatSpec(l.Spec.Name, l.Settings(), l.Point, b.Info.Key)
		all = append(all, e)
	}
	if o.Bands {
		if err := predictBands(b, layouts, all); err != nil {
			return nil, err
		}
	}
	for i, l := range layouts {
		if err := all[i].AddFloor(b.FloorMachine(), l); err != nil {
			return nil, err
		}
	}
	for i, l := range layouts {
		if !o.Run {
			break
		}
		done := b.tell.Busy("measuring the operations of " + l.Spec.Label)
		err := all[i].Measure(ctx, b.Device, l, m)
		if done(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// predictBands adds the model's predictions for techniques that keep their weights in caches. A device that
// chooses among kernels has its own predictions and gets none here.
func predictBands(b *Bench, layouts []*tuner.Layout, all []*explain.Explanation) error {
	measured := false
	for i, l := range layouts {
		if l.Spec.Name != "persistent" || l.Reason != "" || all[i].Declined != nil || len(all[i].Choices) > 0 {
			continue
		}
		if !measured {
			if err := b.MeasureMachine(); err != nil {
				return err
			}
			measured = true
		}
		var err error
		if all[i].Predicted, err = b.Predict(l); err != nil {
			return err
		}
	}
	return nil
}

// Predict predicts the time of one step of a layer of l if each worker keeps a band of its
// recurrent weights. It returns nil if the machine was not measured or the cell has no recurrent
// weights.
func (b *Hardware) Predict(l *tuner.Layout) (*model.Bands, error) {
	if b.Machine == nil || l.Problem.Cell.Recurrent == 0 {
		return nil, nil
	}
	w, err := tuner.WorkOf(l.Point)
	if err != nil {
		return nil, err
	}
	return b.Machine.InBands(l.Problem.Cell, w)
}

// FormatSpec formats a technique with its settings for --impl, without settings that are defaults at the point on
// the device with that key.
func FormatSpec(name string, knobs knob.Params, at record.Point, device string) string {
	launches, vocabulary := strings.HasPrefix(device, "cuda-"), cpu.Vocabulary
	if launches { // each operation is a launch
		vocabulary = cuda.Vocabulary
	}
	return tuner.FormatSpec(impl.All(), vocabulary(), launches, name, knobs, at)
}
