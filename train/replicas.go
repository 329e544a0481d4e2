package train

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A replica is the network on one device, with its part of each minibatch.
type replica struct {
	plan    *rnn.Plan
	program device.Program
	part    rnn.Part
}

// compile compiles the network for each device. Replicas that train together need the same sums in
// the same order: a difference is an error of the first sum.
func (t *Trainer) compile() error {
	devices, o := t.Replicas, t.Optimizer.Optimizer
	if len(devices) == 0 {
		devices = []device.Device{t.Device}
	} else {
		o.Replicas, o.Whole = len(devices), t.Problem.Batch
	}
	parts, err := rnn.Parts(t.Problem.Batch, len(devices))
	if err != nil {
		return err
	}
	for i, d := range devices {
		p := t.Problem
		p.Batch = parts[i].N
		plan, s, err := rnn.LayoutTraining(t.Technique, p, Settings(t), o)
		if err != nil {
			return err
		}
		program, err := d.Compile(s, t.deviceKnobs(d, s))
		if err != nil {
			return err
		}
		t.replicas = append(t.replicas, replica{plan, program, parts[i]})
	}
	t.replica = t.replicas[0]
	return nil
}

// deviceKnobs are those settings that d offers. They were completed for the whole device. A replica
// has only a part of its workers and may offer fewer.
func (t *Trainer) deviceKnobs(d device.Device, s *schedule.Schedule) knob.Params {
	if len(t.Replicas) == 0 {
		return t.DeviceKnobs
	}
	k := knob.Params{}
	for _, o := range d.Knobs(s) {
		if v, ok := t.DeviceKnobs[o.Name]; ok {
			k[o.Name] = v
		}
	}
	return k
}

func (t *Trainer) closeReplicas() error {
	var errs []error
	for _, r := range t.replicas {
		errs = append(errs, r.program.Close())
	}
	return errors.Join(errs...)
}

// each calls f for all replicas at the same time. One that fails has the others fail too, so it
// returns the error of the device that is to blame.
func (t *Trainer) each(f func(r replica) error) error {
	if len(t.replicas) == 1 {
		return f(t.replica)
	}
	errs := make([]error, len(t.replicas))
	var all sync.WaitGroup
	for i, r := range t.replicas {
		all.Go(func() {
			if err := f(r); err != nil {
				errs[i] = fmt.Errorf("replica %d of %d: %w", i+1, len(t.replicas), err)
			}
		})
	}
	all.Wait()
	return rootOf(errs)
}

// rootOf is the error of a device that was lost, or else the first. One that hangs may wait
// for one that was lost.
func rootOf(errs []error) error {
	for _, lost := range []error{device.ErrKilled, device.ErrFault, device.ErrMemory, device.ErrHang} {
		if i := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, lost) }); i >= 0 {
			return errs[i]
		}
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// share is the part of a minibatch that a replica trains on.
func (t *Trainer) share(r replica, m *minibatch) *minibatch {
	if len(t.replicas) == 1 {
		return m
	}
	rows := func(values []float32, cols int) []float32 { return r.part.Rows(values, cols, t.Problem.Batch) }
	part := &minibatch{x: rows(m.x, r.input().Cols), target: rows(m.target, r.plan.Head.Target.Cols)}
	if m.ofSteps != nil {
		part.ofSteps = rows(m.ofSteps, 1)
	}
	return part
}

// input is the matrix that a minibatch's x is written to.
func (r replica) input() *schedule.Matrix {
	if r.plan.XN != nil {
		return r.plan.XN
	}
	return r.plan.Given
}

// perReplica reports whether the array of that name in a checkpoint differs between replicas, as
// the states of their sequences do.
func (r replica) perReplica(name string) bool {
	_, ok := r.plan.FirstStates()[name]
	return ok
}

// gather reads an array of a checkpoint from all replicas. cols is its number of columns.
func (t *Trainer) gather(name string) (values []float32, cols int, err error) {
	replicas := t.replicas
	if !t.perReplica(name) {
		replicas = replicas[:1]
	}
	kept := make([][]float32, len(replicas))
	for i, r := range replicas {
		m := t.kept(r)[name]
		kept[i], cols = make([]float32, m.Elements()), m.Cols
		if err := r.program.Read(m, kept[i]); err != nil {
			return nil, 0, err
		}
		kept[i] = kept[i][:r.rows(name, m)*cols]
	}
	if len(replicas) == 1 {
		return kept[0], cols, nil
	}
	for band := range len(kept[0]) / (replicas[0].part.N * cols) { // one for each layer that the matrix has
		for i, r := range replicas {
			n := r.part.N * cols
			values = append(values, kept[i][band*n:(band+1)*n]...)
		}
	}
	return values, cols, nil
}

// gatherAll reads all arrays of a checkpoint of t, by name.
func gatherAll(t *Trainer) (map[string][]float32, error) {
	all := map[string][]float32{}
	for name := range t.kept(t.replica) {
		values, _, err := t.gather(name)
		if err != nil {
			return nil, err
		}
		all[name] = values
	}
	return all, nil
}

// values is the number of values that gather returns.
func (t *Trainer) values(name string) (n int) {
	for _, r := range t.replicas {
		m := t.kept(r)[name]
		n += r.rows(name, m) * m.Cols
		if !r.perReplica(name) {
			break
		}
	}
	return n
}

// scatter writes the arrays of a checkpoint, by name, to all replicas.
func (t *Trainer) scatter(values map[string][]float32) error {
	for _, r := range t.replicas {
		to := map[*schedule.Matrix][]float32{}
		for name, m := range t.kept(r) {
			to[m] = values[name]
			if r.perReplica(name) && len(t.replicas) > 1 {
				to[m] = r.part.Rows(values[name], m.Cols, t.Problem.Batch)
			}
		}
		for _, one := range r.plan.Updates.Trained {
			if one.Used != one.Param {
				to[one.Used] = to[one.Param]
			}
		}
		for m, v := range to {
			if err := r.program.Write(m, v); err != nil {
				return err
			}
		}
	}
	return nil
}
