package persistent

import (
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// LaunchForward launches the grouped kernel of op. ordered: the weights are packed in form's
// layout.
func LaunchForward(t *launch.Target, op schedule.Persistent, form Config, control uint64, ordered, urgent bool) launch.Command {
	form.sizes += ", " + codegen.Constants("ORDERED", ints.FromBool(ordered), "CLOCKS", t.Knobs["clocks"])
	src, args := form.variant.Source(t, op, form.sizes, form.threads, max(1, form.beside), control)
	return form.launch(op.Steps, op.Batch(), urgent, src, args)
}

// LaunchBackward launches the grouped kernel of op's gradient.
func LaunchBackward(t *launch.Target, op schedule.PersistentBackward, form Config, control uint64, urgent bool) launch.Command {
	src, args := form.variant.BackwardSource(t, op, form.sizes, form.threads, control)
	return form.launch(op.Steps, op.Batch(), urgent, src, args)
}

// launch launches the kernel for so many steps and sequences. urgent: other layers of a wave wait
// for it.
func (t Config) launch(steps, batch int, urgent bool, src *codegen.Source, args []uint64) launch.Command {
	running := ints.CeilDiv(batch, t.samples)
	if t.few {
		running = min(running, t.together)
	}
	s := launch.New(src, [3]int{running * t.blocks, 1, 1}, [3]int{t.threads, 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative, s.Launch.Urgent = t.shared, t.spread, urgent
	s.About, s.Seconds = t.about(steps, urgent), StartTime+float64(steps)*t.Step()
	switch {
	case t.cluster > 1:
		s.Launch.Cluster = t.cluster
	case strategy(t.Knobs["resident"]).Clusters:
		s.Launch.Cluster = t.blocks
	}
	return s
}
