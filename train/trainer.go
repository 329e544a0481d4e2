// Package train trains networks. It feeds minibatches to a device, where each run is an iteration,
// reads the loss now and then, and keeps checkpoints.
//
// Techniques and devices know nothing of it: see rnn.LayoutTraining.
package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/train/data"
)

// A Setup says what is trained, how and on which data.
type Setup struct {
	Device      device.Device
	Replicas    []device.Device // train together, each on a part of the minibatch; none: Device alone
	Technique   rnn.Technique
	Problem     rnn.Problem // New sets its pass, and its input and output to the source's; Steps are those of the source, the new ones
	Knobs       knob.Params // of the technique
	DeviceKnobs knob.Params
	Optimizer   Optimizer
	Seed        uint64 // of the first parameters
	Glorot      bool   // draws them as Glorot and Bengio (2010) do
	Source      data.Source
}

// A Trainer is a network under training on a device. It is for one goroutine.
type Trainer struct {
	Setup
	replica    // the first one, whose parameters are those of all
	replicas   []replica
	feed       *feed
	staged     *staged   // nil: the next minibatch is not on the devices
	underway   []*staged // minibatches of the runs that were begun, the oldest first
	iterations int
	took       time.Duration // of all iterations, feeding and reading included
	position   []byte        // of the source, after the last iteration
	ready      bool          // all steps of the history come from the data
	counted    int           // steps of the last minibatch that count
	solver     solver
}

// Asked is p with the input and the output that a task needs.
func Asked(p rnn.Problem, s data.Shape) rnn.Problem {
	p.Input, p.OneHot, p.Symbols, p.Embedding = s.Input, s.OneHot, s.Symbols, s.Embedding
	p.Output, p.Groups, p.Weighted, p.Transcript = s.Output, s.Groups, s.Weighted, s.Transcript
	return p
}

// New compiles the network and writes its first parameters: uniform in ±1/√H, as PyTorch
// draws them, with states of 0.
func New(s Setup) (*Trainer, error) {
	shape := s.Source.Shape()
	s.Problem = Asked(s.Problem, shape)
	s.Problem.Pass = rnn.Train
	s.Optimizer.Carry = shape.Continues
	t := &Trainer{Setup: s}
	t.solver = newSolver(t)
	err := t.compile()
	if err == nil {
		err = t.begin()
	}
	if p, ok := s.Source.(data.Preparer); ok && err == nil { // before anything is timed
		err = p.Prepare()
	}
	if err != nil {
		return nil, errors.Join(err, t.closeReplicas())
	}
	t.position = s.Source.State()
	t.feed = feedOf(t)
	return t, nil
}

// begin writes the first parameters.
func (t *Trainer) begin() error {
	first := t.first()
	return t.each(func(r replica) error {
		d := first
		if len(t.replicas) > 1 {
			d = first.Part(r.part)
		}
		return errors.Join(r.plan.Write(r.program, d), r.plan.Updates.Begin(r.program, d), r.program.Prepare())
	})
}

// first returns the first parameters.
func (t *Trainer) first() *rnn.Data {
	d := rnn.NewData(t.Problem, t.Seed, 1, "zeros")
	d.ClearStates()
	if t.Glorot {
		d.Glorot()
	}
	return d
}

// fillHistory reads minibatches before the first iteration, at a learning rate of 0, until all
// steps of the history come from the data.
func (t *Trainer) fillHistory() error {
	if t.ready {
		return nil
	}
	frozen := func(int) []float32 { return t.Optimizer.Rates(1, 0, 0) }
	if _, err := t.run(context.Background(), t.Problem.Runs(), frozen); err != nil {
		return fmt.Errorf("before the first iteration: %w", err)
	}
	t.ready = true
	if t.Problem.Runs() == 0 {
		return nil
	}
	return t.plan.Updates.Begin(t.program, t.first()) // resets the moments, which came from these runs
}

// Close frees what the trainer holds on its device.
func (t *Trainer) Close() error {
	t.feed.close()
	return t.closeReplicas()
}

// Iterations is the number of iterations, those before a checkpoint included.
func (t *Trainer) Iterations() int { return t.iterations }

// Took is the time of all iterations: feeding, training and reading the loss.
func (t *Trainer) Took() time.Duration { return t.took }

// Step makes n iterations. If ctx ends, it finishes those that have begun. Where an iterative technique has not
// converged for the last, it makes all of them again with more iterations of the technique. So it makes all or
// none of them. The error is ErrNotConverged if no number is enough.
func (t *Trainer) Step(ctx context.Context, n int) error {
	if err := errors.Join(t.fillHistory(), t.solver.find(ctx)); err != nil {
		return err
	}
	start := time.Now()
	defer func() { t.took += time.Since(start) }()
	if t.solver.knob != "" {
		return t.solver.solve(ctx, n)
	}
	return iterate(ctx, t, n)
}

// iterate makes n iterations of t, whether or not an iterative technique converges.
func iterate(ctx context.Context, t *Trainer, n int) error {
	first := t.iterations + 1
	made, err := t.run(ctx, n, func(i int) []float32 {
		return t.Optimizer.Rates(first+i, t.Optimizer.RateAt(first+i), t.Optimizer.Clip)
	})
	t.iterations += made
	if err != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("iteration %d: %w", t.iterations+1, err)
	}
	return err
}

// Loss is the mean loss of the last iteration.
func (t *Trainer) Loss() (float64, error) {
	start := time.Now()
	defer func() { t.took += time.Since(start) }()
	var all []float32
	for _, r := range t.replicas {
		loss := make([]float32, r.plan.Head.Loss.Elements())
		if err := r.program.Read(r.plan.Head.Loss, loss); err != nil {
			return 0, err
		}
		all = append(all, loss...)
	}
	return sum(all) / float64(max(1, t.counted)), nil
}

// run makes a run on each of the next n minibatches; rates returns the rates of the i-th. made
// counts the runs until one failed or ctx ended. rates(n) is what the run after the last is
// expected to have.
func (t *Trainer) run(ctx context.Context, n int, rates func(i int) []float32) (made int, err error) {
	if fedAll(t) {
		return overlap(ctx, t, n, rates)
	}
	for ; made < n; made++ {
		if err := ctx.Err(); err != nil {
			return made, err
		}
		if err := t.once(rates(made)); err != nil {
			return made, err
		}
	}
	return made, nil
}

// once writes the next minibatch and makes a run.
func (t *Trainer) once(rates []float32) error {
	m := t.feed.next()
	if m.err != nil {
		return m.err
	}
	err := t.each(func(r replica) error {
		err := t.share(r, m).write(r.plan, r.program, r.input())
		if err == nil {
			err = r.program.Write(r.plan.Updates.Rates, rates)
		}
		if err == nil {
			_, err = r.program.Run(1)
		}
		return err
	})
	if err != nil {
		return err
	}
	t.counted = m.counted
	t.position = append(t.position[:0], m.state...)
	t.feed.recycle(m)
	return nil
}

func sum(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum
}

// kept returns a replica's matrices that a checkpoint holds, by name: parameters, moments and,
// where they are carried, states and the steps of the history.
func (t *Trainer) kept(r replica) map[string]*schedule.Matrix {
	all := map[string]*schedule.Matrix{}
	for _, one := range r.plan.Updates.Trained {
		all[one.Name] = one.Param
		for i, m := range one.Moment {
			all[fmt.Sprintf("%s.moment%d", one.Name, i+1)] = m
		}
	}
	for _, k := range r.plan.Kept() {
		all["kept "+k.Matrix.Name] = k.Matrix
	}
	if t.Optimizer.Carry && !r.plan.Continues {
		for name, m := range r.plan.FirstStates() {
			all[name] = m
		}
	}
	return all
}
