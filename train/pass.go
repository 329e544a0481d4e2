package train

import (
	"errors"
	"time"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Pass is forward and backward alone of a network under training, on the same device: no feeding,
// no update, no reading of the loss. Embedding and output layer are included, and weights are
// packed ahead.
type Pass struct {
	trainer *Trainer
	plan    *rnn.Plan
	knobs   knob.Params // of the device
	program device.Program
	values  []float32 // kept, so that copies leave nothing to collect while passes are timed
}

// NewPass prepares the pass of t's network. It returns nil where there is none: replicas share a
// minibatch, or the device has no memory for a second program.
func NewPass(t *Trainer) (*Pass, error) {
	if len(t.Replicas) > 0 {
		return nil, nil
	}
	pass := &Pass{trainer: t}
	s, err := pass.layOut()
	if err != nil {
		return nil, declinedPass(err)
	}
	knobs := knob.Params{}
	for _, k := range t.Device.Knobs(s) {
		if v, ok := t.DeviceKnobs[k.Name]; ok {
			knobs[k.Name] = v
		}
	}
	need, err := t.Device.Memory(s, knobs)
	if err != nil {
		return nil, declinedPass(err)
	}
	const programs = 3 // training and held-out data have one each
	if has := t.Device.Info().Memory; has > 0 && programs*need > has/10*9 {
		return nil, nil
	}
	pass.knobs = knobs
	if pass.program, err = t.Device.Compile(s, knobs); err != nil {
		return nil, declinedPass(err)
	}
	return pass, nil
}

// layOut lays the pass out. An iterative technique takes as many iterations as the trainer.
func (p *Pass) layOut() (s *schedule.Schedule, err error) {
	t := p.trainer
	p.plan, s, err = rnn.Layout(t.Technique, t.Problem, Settings(t))
	return s, err
}

// declinedPass is nil if err says that there can be no such pass.
func declinedPass(err error) error {
	if errors.Is(err, schedule.ErrUnsupported) || errors.Is(err, device.ErrMemory) {
		return nil
	}
	return err
}

func (p *Pass) Close() error { return p.program.Close() }

// Load gives the pass the parameters and the last minibatch of its trainer.
func (p *Pass) Load() error {
	if p.plan.Iterations != p.trainer.plan.Iterations {
		if err := p.recompile(); err != nil {
			return err
		}
	}
	from, into := p.trainer, p.plan.Inputs()
	for _, one := range from.plan.Updates.Trained {
		if err := p.copy(into[one.Name], one.Param); err != nil {
			return err
		}
	}
	err := errors.Join(p.copy(p.plan.Given, from.plan.Given), p.copy(p.plan.Head.Target, from.plan.Head.Target))
	if m := ofSteps(p.plan); m != nil && err == nil {
		err = p.copy(m, ofSteps(from.plan))
	}
	if err == nil {
		err = rnn.WriteConstants(p.plan, p.program)
	}
	if err == nil {
		err = p.program.Prepare()
	}
	return err
}

// recompile follows the trainer, whose technique takes more iterations than before.
func (p *Pass) recompile() error {
	s, err := p.layOut()
	if err == nil {
		err = p.program.Close()
	}
	if err == nil {
		p.program, err = p.trainer.Device.Compile(s, p.knobs)
	}
	return err
}

// copy copies a matrix of the trainer.
func (p *Pass) copy(to, from *schedule.Matrix) error {
	n := from.Elements()
	if cap(p.values) < n {
		p.values = make([]float32, n)
	}
	if err := p.trainer.program.Read(from, p.values[:n]); err != nil {
		return err
	}
	return p.program.Write(to, p.values[:n])
}

// Run makes n passes back to back, and returns the mean time of one.
func (p *Pass) Run(n int) (time.Duration, error) {
	s, err := p.program.Run(n)
	return s.Wall / time.Duration(n), err
}
