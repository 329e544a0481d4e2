package agenda

import (
	"context"
	"fmt"
	"math"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A Forecast says what an agenda will measure, with how much memory and time.
type Forecast struct {
	Entries []Entry
	Whole   bool    // every point was laid out
	Seconds float64 // estimate of all
	Rounds  float64 // that are expected at a point
	Others  string  // how much other programs use of the processors; "": not much, or unknown
	Most    Load    // the largest of a point
}

// A Load is the memory that measuring a point takes at most.
type Load struct {
	Point  record.Point
	Labels []string // of the techniques
	Bytes  int64    // of those that are measured side by side; 0: none was laid out
	own    int64    // of Bytes, what techniques take for themselves
	shared int64
	one    int64 // the most that a technique takes alone
}

// add counts a technique.
func (m *Load) add(l *tuner.Layout) {
	m.Labels = append(m.Labels, l.Spec.Label)
	m.own, m.shared, m.one = m.own+l.Own(), max(m.shared, l.Shared()), max(m.one, l.Need())
}

// total is what the techniques take together, or in groups that fit in free bytes; 0: all at once. In
// sequence, each runs alone.
func (m *Load) total(free int64, sequential bool) int64 {
	sum := m.own + m.shared
	switch {
	case sequential:
		return m.one
	case free > 0:
		return min(sum, max(free, m.one))
	}
	return sum
}

// An Entry is one technique at one point.
type Entry struct {
	Point          record.Point
	Spec           grid.Spec
	Memory         int64 // bytes needed; 0: not laid out
	Ops            int
	Seconds        float64 // estimate
	Code, Declined string  // reason code and reason why it is skipped; "": it is not
}

// Known reports whether e was laid out or declined.
func (e *Entry) Known() bool { return e.Ops > 0 || e.Declined != "" }

// Within is how many records a budget suffices for, in the order of the agenda, skipped ones included.
func (f *Forecast) Within(budget time.Duration) int {
	left := budget.Seconds()
	for i, e := range f.Entries {
		if left -= e.Seconds; left < 0 {
			return i
		}
	}
	return len(f.Entries)
}

// Records returns the entries as records, either ok or skipped, without measurements.
func (f *Forecast) Records() []*record.Record {
	var list []*record.Record
	for _, e := range f.Entries {
		r := &record.Record{Point: e.Point, Impl: record.Impl{Name: e.Spec.Name, Label: e.Spec.Label}, Status: record.OK}
		if e.Declined != "" {
			r.Status, r.ReasonCode, r.Reason = record.Skipped, &e.Code, &e.Declined
		}
		list = append(list, r)
	}
	return list
}

// An Estimator lays agendas out ahead of measuring them.
type Estimator struct {
	Device  device.Info
	Limits  device.Limits // unknown rates are guessed
	Free    int64         // memory that a technique may take; 0: unknown
	Measure config.Measure
	Others  string // how much other programs use of the processors; "": not much, or unknown

	// LayOut lays out one entry. Errors are mistakes of the user.
	LayOut func(record.Point, grid.Spec) (*tuner.Layout, error)
}

// Forecast lays out the agenda's entries and estimates how long measuring takes. After limit (0: none)
// it lays out only techniques that it has not seen yet. Two techniques with the same settings at a
// point are an error, since one's records would replace the other's. tell is called before each
// entry with the number of entries done.
func (x *Estimator) Forecast(ctx context.Context, a Agenda, limit time.Duration, tell func(done int)) (*Forecast, error) {
	f := &Forecast{Whole: true, Rounds: x.rounds(), Others: x.Others}
	start := time.Now()
	first := map[string]bool{} // labels that were laid out at least once
	for _, q := range a.Parts {
		for _, at := range q.Points {
			labels := map[string]string{} // by the key of their records
			load := Load{Point: at}
			reference := true // the first technique at a point includes the time of the reference
			for _, s := range q.Specs {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				tell(len(f.Entries))
				e := Entry{Point: at, Spec: s}
				if late := limit > 0 && time.Since(start) > limit; late && first[s.Label] {
					f.Whole = false
					f.Entries = append(f.Entries, e)
					continue
				}
				first[s.Label] = true
				l, err := x.LayOut(at, s)
				if err != nil {
					return nil, fmt.Errorf("%v: %w", at, err)
				}
				l.Fit(x.Free)
				key := l.Key(x.Device.Key)
				if other, twice := labels[key]; twice && l.Reason == "" {
					return nil, fmt.Errorf("%v: --impl %s and %s have the same settings: omit one", at, other, s.Label)
				}
				labels[key] = s.Label
				e.Code, e.Declined = l.Code, l.Reason
				if l.Schedule != nil {
					e.Memory, e.Ops = l.Need(), len(l.Schedule.Nodes)
				}
				if l.Reason == "" {
					load.add(l)
					e.Seconds = x.estimate(l, reference)
					reference = false
					if q.Training != nil {
						e.Seconds = x.training(l, *q.Training)
					}
				}
				f.Entries = append(f.Entries, e)
			}
			if load.Bytes = load.total(x.Free, x.Measure.Order == "sequential"); load.Bytes > f.Most.Bytes {
				f.Most = load
			}
		}
	}
	known, n := 0.0, 0
	for _, e := range f.Entries {
		if e.Known() {
			known, n = known+e.Seconds, n+1
		}
	}
	if n > 0 {
		f.Seconds = known / float64(n) * float64(len(f.Entries))
	}
	return f, nil
}

// estimate guesses the seconds that measuring a layout takes.
func (x *Estimator) estimate(l *tuner.Layout, reference bool) float64 {
	return x.measuring(x.once(l), l.Problem, reference) + float64(l.Need())/2e9
}

// training guesses the seconds that training a layout takes. It ignores that a loss may be reached
// earlier.
func (x *Estimator) training(l *tuner.Layout, t record.TrainingPlan) float64 {
	s := float64(t.Iterations) * x.once(l)
	if t.Time > 0 && (t.Iterations == 0 || t.Time < s) {
		s = t.Time
	}
	return s + float64(l.Need())/2e9
}

// once guesses the seconds that a run takes.
func (x *Estimator) once(l *tuner.Layout) float64 {
	const perOp = 0.5e-6 // handing an operation over
	run := perOp * float64(len(l.Schedule.Nodes))
	flops, copyRate := x.Limits.FLOPS, x.Limits.Copy
	if flops == 0 {
		flops = 20e9 * float64(max(1, x.Device.Workers))
	}
	if copyRate == 0 {
		copyRate = 5e9 * float64(max(1, x.Device.Workers))
	}
	// Caches serve most of the traffic; products reach about half of the peak.
	return run + math.Max(float64(l.Schedule.FLOPs())/(0.5*flops), float64(l.Schedule.Traffic())/(4*copyRate))
}

// rounds guesses how many rounds a point takes.
func (x *Estimator) rounds() float64 { return float64(x.Measure.Rounds+x.Measure.MaxRounds) / 2 }

// measuring guesses the seconds to check and time a technique. A run takes run seconds, and reference
// says that the reference has to be computed.
func (x *Estimator) measuring(run float64, problem rnn.Problem, reference bool) float64 {
	m := &x.Measure
	rounds := x.rounds()
	if problem.Calls > 0 {
		return x.calling(run, rounds, problem, reference)
	}
	measure := rounds * (math.Max(m.MinTime.Seconds(), run) + run)
	if m.PointTimeout > 0 {
		measure = math.Min(measure, m.PointTimeout.Seconds()+run)
	}
	t := measure + math.Max(m.Warmup.Seconds(), run)
	if m.Energy {
		t += tuner.EnergySeconds
	}
	if m.Verify {
		t += run
		if reference {
			t += math.Min(float64(oracle.ReferenceFLOPs(problem, problem.Batch)), 4e9) / 2e9
		}
	}
	return t
}
