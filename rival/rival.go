// Package rival runs programs from elsewhere as techniques.
//
// A rival is a process that computes whole passes: PyTorch, oneDNN, somebody's own kernel. It
// receives requests on its standard input and answers on its standard output, each one line of
// JSON. Arrays travel in .npz files, with the names and layouts of package rnn/torch.
// docs/rivals.md describes the protocol.
//
// A Rival is a technique: its plan is one operation, schedule.Foreign, with the arrays that go in
// and come out. It is also the only device that runs such plans, each in a process. Rivals are not
// trusted: what they say is checked, and one that does not answer in time is killed.
package rival

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rnnbench/device"
	"rnnbench/record/files"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Options say what to start and how long to wait for it.
type Options struct {
	Name    string      // as --impl takes it
	Command []string    // program and arguments
	Devices []string    // names or kinds of devices that it may run on; none: as it says
	Vary    []string    // knobs whose values experiments compare; none: all
	On      device.Info // the device that it runs beside

	Timeout time.Duration // for a run or a file, before it counts as hung; 0: a minute
	Start   time.Duration // for its first answers; 0: two minutes, since libraries take long to load
}

// A Rival is a program from elsewhere. It is a technique of package rnn, and the device
// that its plans run on.
type Rival struct {
	o          Options
	version    string
	knobs      []knob.Knob
	devices    []string
	precisions []string
	directions []string
	lengths    bool     // sequences may have lengths of their own
	projection bool     // layers may have a projection
	norms      []string // values of norm, besides none
	calls      bool     // it may be called step by step
	resets     bool     // sequences may begin anew at any step
	heads      bool     // recurrent weights may be those of heads
	unitError  float64  // see rnn.Plan.UnitError
	dir        string   // for files
	remove     func() error
	failed     error // why no program of it can run; nil: they can

	mu    sync.Mutex
	idle  []*process // with the device open and no program
	files int        // number of files so far

	ctx     context.Context // ends every request; nil: none does
	prepare context.Context // ends preparations; nil: none does
	limit   time.Duration   // for a run; 0: Options.Timeout
}

// Bound has requests end at once when ctx ends, and preparations when prepare ends. limit is how long a
// technique may be measured at a point: a run gets twice as long and some time to start, but no more
// than Options.Timeout; 0 is no limit.
func (r *Rival) Bound(ctx, prepare context.Context, limit time.Duration) {
	const begin = 5 * time.Second
	r.ctx, r.prepare, r.limit = ctx, prepare, 0
	if most := 2*limit + begin; limit > 0 && most < r.o.Timeout {
		r.limit = most
	}
}

// patience is how long a run may take, if the runs of it take so long at the pace of the slowest so far.
func (r *Rival) patience(runs time.Duration) time.Duration {
	if r.limit > 0 {
		return r.limit
	}
	return r.o.Timeout + min(10*runs, 10*r.o.Timeout)
}

// Open starts a rival, asks what it can do and has it open the device.
func Open(o Options) (*Rival, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Start == 0 {
		o.Start = 2 * time.Minute
	}
	r := &Rival{o: o}
	p, a, err := r.launch()
	if err != nil {
		return nil, err
	}
	r.version, r.devices, r.precisions, r.lengths, r.projection = a.Version, a.Devices, a.Precisions, a.Lengths, a.Projection
	r.calls, r.resets, r.heads, r.norms = a.Calls, a.Resets, a.Heads, a.Norms
	if len(o.Devices) > 0 && !runsOn(o.Devices, o.On.Name) {
		r.devices = o.Devices
	}
	if r.knobs, err = a.knobs(); err == nil {
		r.directions, err = a.directions()
	}
	if err == nil {
		r.unitError, err = a.unitError(o.On.Name)
	}
	if err != nil {
		return nil, p.end(fmt.Errorf("%s sent an invalid answer to hello: %w", o.Name, err), device.ErrStart)
	}
	if r.dir, r.remove, err = files.Folder(os.TempDir(), "rnnbench-rival-*"); err != nil {
		p.close()
		return nil, err
	}
	r.idle = append(r.idle, p)
	return r, nil
}

// Failing returns a rival that takes every problem and fails each with why: its points are then lost,
// but no others.
func Failing(o Options, why error) *Rival {
	return &Rival{o: o, failed: why, devices: []string{o.On.Name}, precisions: rnn.Precisions(), directions: rnn.Directions(), lengths: true, projection: true, calls: true, resets: true, heads: true, norms: []string{rnn.NormLayer}}
}

// launch starts a process and opens the device, if the rival runs there. It returns the answer to
// hello.
func (r *Rival) launch() (*process, *answer, error) {
	p, err := start(r.o.Name, r.o.Command)
	if err != nil {
		return nil, nil, err
	}
	a, _, err := p.ask(r.o.Start, request{Hello: version})
	if err != nil {
		return nil, nil, startFailure(err)
	}
	if a.Unsupported != "" {
		return nil, nil, p.end(fmt.Errorf("%s: %s", r.o.Name, a.Unsupported), device.ErrStart)
	}
	if !runsOn(a.Devices, r.o.On.Name) { // every point is declined, without the process
		return p, a, nil
	}
	opened, _, err := p.ask(r.o.Start, request{Open: r.o.On.Name, Threads: r.o.On.Workers})
	switch {
	case err != nil:
		return nil, nil, startFailure(err)
	case !opened.OK:
		return nil, nil, p.end(fmt.Errorf("%s cannot open %s: %s", r.o.Name, r.o.On.Name, reason(opened)), device.ErrStart)
	}
	return p, a, nil
}

func reason(a *answer) string {
	if a.Unsupported != "" {
		return a.Unsupported
	}
	return "it did not say why"
}

// Close ends the rival's processes and removes its files.
func (r *Rival) Close() error {
	for _, p := range r.idle {
		p.close()
	}
	r.idle = nil
	if r.remove == nil { // it did not start
		return nil
	}
	return r.remove()
}

// Runs reports whether the rival runs on the device that it is beside.
func (r *Rival) Runs() bool { return runsOn(r.devices, r.o.On.Name) }

// Version is the version that the rival states; "": none.
func (r *Rival) Version() string { return r.version }

// Name implements rnn.Technique.
func (r *Rival) Name() string { return r.o.Name }

// Doc implements rnn.Technique.
func (r *Rival) Doc() string { return strings.TrimSpace("a rival: " + r.version) }

// Knobs implements rnn.Technique.
func (r *Rival) Knobs(rnn.Problem) []knob.Knob { return r.knobs }

// Varied returns the knobs whose values experiments compare.
func (r *Rival) Varied() []knob.Knob {
	if len(r.o.Vary) == 0 {
		return knob.Public(r.knobs)
	}
	return slices.DeleteFunc(slices.Clone(r.knobs), func(k knob.Knob) bool { return !slices.Contains(r.o.Vary, k.Name) })
}

// Unoffered returns the names in Options.Vary that are no knobs of the rival on this device.
func (r *Rival) Unoffered() []string {
	return slices.DeleteFunc(slices.Clone(r.o.Vary), func(name string) bool {
		return slices.ContainsFunc(r.knobs, func(k knob.Knob) bool { return k.Name == name })
	})
}

// Directs implements rnn.Director: a program is asked for a whole network.
func (r *Rival) Directs(rnn.Direction) bool { return true }

// LongestFirst implements rnn.LongestFirst: sequences with lengths of their own are packed as PyTorch packs them.
func (r *Rival) LongestFirst() {}

// Host is the device that the rival's plans run on.
func (r *Rival) Host() device.Device { return (*host)(r) }

// Normalises implements rnn.Normaliser: Plan declines what the rival does not offer.
func (r *Rival) Normalises() {}

// Bypasses implements rnn.Bypasser: Plan declines shortcuts and row convolutions.
func (r *Rival) Bypasses() {}

// Plan implements rnn.Technique.
func (r *Rival) Plan(p *rnn.Plan, k knob.Params) error {
	switch {
	case !slices.Contains(r.directions, p.Direction.String()):
		return fmt.Errorf("%w: %s runs layers in direction %s, not %v", schedule.ErrDirection, r.o.Name, listed(r.directions), p.Direction)
	case p.Resets > 0 && !r.resets:
		return fmt.Errorf("%w: %s begins no sequence anew within a run, but resets are %d%%: set resets to none", schedule.ErrResets, r.o.Name, p.Resets)
	case p.Lengths != "" && !r.lengths:
		return fmt.Errorf("%w: %s runs all steps of all sequences, but lengths are %.60v: set lengths to full", schedule.ErrLengths, r.o.Name, p.Lengths)
	case p.Calls > 0 && !r.calls:
		return fmt.Errorf("%w: %s runs whole sequences and keeps no state from call to call", schedule.ErrCalls, r.o.Name)
	case p.OneHot:
		return fmt.Errorf("%w: rivals take features, not one-hot input", schedule.ErrInput)
	case p.Heads > 1 && !r.heads:
		return fmt.Errorf("%w: %s takes full recurrent weights, not those of heads: set heads to none", schedule.ErrHeads, r.o.Name)
	case p.Projection > 0 && !r.projection:
		return fmt.Errorf("%w: %s offers no projection of the outputs of layers, but projection is %d: set projection to none", schedule.ErrProjection, r.o.Name, p.Projection)
	case p.Skip > 0:
		return fmt.Errorf("%w: rivals compute layers one above the other, without shortcuts: set skip to none", schedule.ErrSkip)
	case p.Lookahead > 0:
		return fmt.Errorf("%w: rivals compute recurrent layers alone, without row convolutions: set lookahead to none", schedule.ErrLookahead)
	case p.Norm != "" && !slices.Contains(r.norms, p.Norm):
		return fmt.Errorf("%w: %s offers no layers with norm=%s: set norm to none", schedule.ErrNorm, r.o.Name, p.Norm)
	case p.Output > 0:
		return fmt.Errorf("%w: rivals compute recurrent layers alone, not the output layer", schedule.ErrUnsupported)
	case !slices.Contains(r.precisions, p.Precision.String()):
		return fmt.Errorf("%w: %s computes in %s, not %v", schedule.ErrPrecision, r.o.Name, listed(r.precisions), p.Precision)
	}
	p.UnitError = r.unitError
	text, err := json.Marshal(work{pointOf(p.Problem), k})
	if err != nil {
		return err
	}
	f := schedule.Foreign{Program: r.o.Name, Request: string(text), Products: p.FLOPs()}
	f.In, f.Out = arrays(p, p.AsWhole())
	p.Do(0, f)
	return nil
}

func listed(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return oneLine(strings.Join(words, ", "), mostText)
}

// arrays returns the arrays that go in and come out, as package rnn/torch names and shapes them.
// Where sequences have lengths of their own, rows are packed step after step: a step has rows of
// the sequences that have it.
func arrays(p *rnn.Plan, w *rnn.Whole) (in, out []schedule.Array) {
	train := p.Pass == rnn.Train
	h, gh, rh := p.Hidden, len(p.Cell.Gates)*p.Hidden, p.Cell.Recurrent*p.Hidden
	add := func(list *[]schedule.Array, name string, m *schedule.Matrix, shape ...int) {
		if m != nil {
			*list = append(*list, schedule.Array{Name: name, Shape: shape, All: m.All()})
		}
	}
	rows := func(cols int) []int {
		if p.Lengths != "" {
			return []int{p.X.Rows, cols}
		}
		return []int{p.Steps, p.Batch, cols}
	}
	add(&in, "input", p.X, rows(p.Input)...)
	add(&in, "reset", rnn.GivenResets(p), p.Steps, p.Batch)
	add(&out, "output", w.Y, rows(p.Out())...)
	if train {
		add(&in, "grad_output", p.DY, rows(p.Out())...)
		add(&out, "grad_input", p.DX, rows(p.Input)...)
	}
	for i, l := range p.Layer {
		n, name := i/p.Ways(), func(s string) string { return p.Named(s, i) }
		for _, a := range []struct {
			name    string
			m, grad *schedule.Matrix
			shape   []int
		}{
			{"weight_ih", l.W, l.Grad.W, []int{gh, p.FanIn(n)}},
			{"weight_hh", l.R, l.Grad.R, []int{p.Cell.Multiplied() * h, p.HeadUnits()}},
			{"bias_ih", l.BX, l.Grad.BX, []int{gh}},
			{"bias_hh", l.BR, l.Grad.BR, []int{rh}},
			{"peephole", l.Peep, l.Grad.Peep, []int{len(p.Cell.Peeps), h}},
		} {
			add(&in, name(a.name), a.m, a.shape...)
			add(&out, "grad_"+name(a.name), a.grad, a.shape...)
		}
		if j := l.Projection; j != nil {
			add(&in, name("weight_hr"), j.W, p.Projection, h)
			add(&out, "grad_"+name("weight_hr"), j.DW, p.Projection, h)
		}
		if m := l.Norm; m != nil {
			add(&in, name("gain_ih"), m.X, gh)
			add(&in, name("gain_hh"), m.R, rh)
			add(&out, "grad_"+name("gain_ih"), m.DX, gh)
			add(&out, "grad_"+name("gain_hh"), m.DR, rh)
		}
	}
	for i, s := range p.Cell.States {
		cols := rnn.StateWidth(p.Problem, i)
		add(&in, s+"_0", w.First[i], p.Reads(), p.Batch, cols)
		add(&out, s+"_n", w.Last[i], p.Reads(), p.Batch, cols)
		if train {
			add(&out, "grad_"+s+"_0", w.Grad[i], p.Reads(), p.Batch, cols)
		}
	}
	return in, out
}

// errForeign reports a schedule that is not a rival's plan.
var errForeign = errors.New("rival: a rival runs its own plans only")

// foreign returns the operation of a plan. Of calls, copies of the last states to the first ones follow
// it: the rival keeps the states itself.
func foreign(s *schedule.Schedule) (schedule.Foreign, error) {
	if len(s.Nodes) == 0 {
		return schedule.Foreign{}, errForeign
	}
	f, ok := s.Nodes[0].Op.(schedule.Foreign)
	for _, n := range s.Nodes[1:] {
		m, is := n.Op.(schedule.Map)
		ok = ok && is && m.Op == cell.Copy
	}
	if !ok {
		return schedule.Foreign{}, errForeign
	}
	return f, nil
}
