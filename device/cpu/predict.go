package cpu

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var _ device.Predictor = (*Device)(nil)

// Predict implements device.Predictor.
func (d *Device) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	f, k, err := d.settle(s, k)
	if err != nil {
		return device.Prediction{}, err
	}
	sec, err := d.limited(k).predict(s, f, k, ratesOf(d.kernels.Level()), detectCaches())
	return device.Prediction{Seconds: sec, Error: predictionError}, err
}

// settle fills in the defaults of knobs and returns the format of packed weights. It declines what
// d cannot run.
func (d *Device) settle(s *schedule.Schedule, k knob.Params) (simd.Format, knob.Params, error) {
	k, err := k.Complete(d.Knobs(s))
	if err != nil {
		return 0, nil, fmt.Errorf("cpu: %w", err)
	}
	f, err := format(s)
	if err == nil {
		err = d.limited(k).declined(s, f, k)
	}
	return f, k, err
}

// caches holds the sizes, in bytes, of a processor's own two caches and of the last one, which all
// share.
type caches struct{ near, own, last int64 }

func detectCaches() caches {
	own := int64(gemm.DetectL2())
	if own == 0 {
		own = 256 << 10
	}
	return caches{near: int64(nearest()), own: own, last: max(int64(cpuid.CPU.Cache.L3), leastL3)}
}

// level returns the nearest memory that holds so many bytes: 0 for the nearest cache, 3 for main
// memory.
func (c caches) level(bytes int64) int {
	for i, size := range [...]int64{c.near, c.own, c.last} {
		if bytes <= size {
			return i
		}
	}
	return 3
}

// A forecast predicts the time of a run of a schedule, operation by operation.
type forecast struct {
	*planner
	core
	schedule *schedule.Schedule
	format   simd.Format
	knobs    knob.Params
	teams    int

	all     int64                // bytes of all matrices
	touched int64                // bytes read and written so far
	wasRead []int64              // per matrix, touched when its weights were last read or written; 0: never
	known   map[likeness]float64 // seconds of operations already predicted
}

func newForecast(pl *planner, s *schedule.Schedule, f simd.Format, k knob.Params, r *rates, c caches) *forecast {
	teams := pl.teams(s, f, k)
	s = asRun(s, f, teams)
	p := &forecast{
		planner: pl, core: core{r, c}, schedule: s, format: f, knobs: k, teams: teams,
		wasRead: make([]int64, len(s.Matrices)), known: map[likeness]float64{},
	}
	for _, m := range s.Matrices {
		p.all += 4 * int64(pl.floats(m, f))
	}
	return p
}

// predict returns the seconds of a run of s.
func (pl *planner) predict(s *schedule.Schedule, f simd.Format, k knob.Params, r *rates, c caches) (float64, error) {
	p := newForecast(pl, s, f, k, r, c)
	taken, err := p.operations()
	if err != nil {
		return 0, err
	}
	if p.teams == 1 {
		sum := 0.0
		for _, t := range taken {
			sum += t
		}
		return sum, nil
	}
	return p.streams(taken), nil
}

// operations returns the seconds of each node, run by its team without waiting for others.
func (p *forecast) operations() ([]float64, error) {
	taken := make([]float64, len(p.schedule.Nodes))
	absorbed := map[int]bool{} // nodes that run as part of another one
	for _, j := range sums(p.schedule) {
		absorbed[j] = true
	}
	second := p.packPairs(p.schedule, p.teams == 1)
	ahead := p.inputs(p.schedule, p.format, p.knobs, p.teams == 1)
	for i, n := range p.schedule.Nodes {
		if absorbed[i] {
			continue
		}
		team := n.Stream % p.teams
		members := p.first(team+1, p.teams) - p.first(team, p.teams)
		if j, ok := second[i]; ok {
			taken[i] -= p.packing(p.schedule.Nodes[j].Op.(schedule.Gemm), members)
		}
		if block, ok := ahead[i]; ok {
			g, op := n.Op.(schedule.Gemm), p.schedule.Nodes[i+1].Op.(schedule.Persistent)
			if sec, ok := p.formed(g, op, block, members, p.share(op, p.format, p.knobs)); ok {
				taken[i], absorbed[i+1] = sec, true
				continue
			}
		}
		sec, err := p.of(n.Op, members)
		if err != nil {
			return nil, err
		}
		taken[i] += sec
	}
	return taken, nil
}

// streams returns the time at which the last team ends. Each team serves its streams in program
// order.
func (p *forecast) streams(taken []float64) float64 {
	ready, ends := make([]float64, p.teams), make([]float64, len(taken))
	last := 0.0
	for i, n := range p.schedule.Nodes {
		team := n.Stream % p.teams
		at := ready[team]
		for _, j := range n.Wait {
			if of := p.schedule.Nodes[j].Stream % p.teams; of != team {
				at = max(at, ends[j]+p.crossing)
			}
		}
		ends[i] = at + taken[i] + p.turn
		ready[team], last = ends[i], max(last, ends[i])
	}
	return last
}

// of returns the seconds of op on so many members of a team. Equal operations are predicted once.
func (p *forecast) of(op schedule.Op, members int) (float64, error) {
	key, ok := p.likeness(op, members)
	if sec, known := p.known[key]; ok && known {
		return sec, nil
	}
	sec, err := p.seconds(op, members, p.share(op, p.format, p.knobs), key.from)
	if ok && err == nil {
		p.known[key] = sec
	}
	return sec, err
}

// seconds predicts op on so many members of a team, if each takes so many pieces. With 0 pieces the
// first member runs it alone.
func (p *forecast) seconds(op schedule.Op, members, pieces, from int) (float64, error) {
	parts, extra := 1, p.start
	if pieces > 0 && members > 1 {
		parts = p.takers(op, pieces, members)
		extra = p.start + p.handover*p.times(parts)
	}
	switch op := op.(type) {
	case schedule.Gemm:
		return extra + p.product(op, from, parts), nil
	case schedule.Pack:
		return extra + p.packed(op, parts), nil
	case schedule.Map:
		return extra + p.maps(parts, op), nil
	case schedule.MapChain:
		return extra + p.maps(parts, op.Steps...), nil
	case schedule.SumRows:
		return extra + float64(op.A.Rows)*(p.mapRow+3*p.mapLine*float64(ceil(ceil(op.A.Cols, line), parts))), nil
	case schedule.Cell:
		return extra + p.cells(op.Program(), op.Next[0], ofCell(op), parts), nil
	case schedule.CellBackward:
		return extra + p.cells(op.Cell.Backward, op.Next[0], ofGradient(op), parts), nil
	case schedule.Persistent:
		return extra + p.persistent(op, parts), nil
	case schedule.PersistentBackward:
		return extra + p.persistentBackward(op, parts), nil
	case schedule.Scan, schedule.ScanBackward:
		return extra + p.scan(op, parts), nil
	case schedule.Gather, schedule.Scatter:
		return extra + p.move(schedule.Bytes(op), parts), nil
	case schedule.SoftmaxLoss:
		return extra + (p.mapFunction+6*p.mapLine)*float64(ceil(op.Logits.Rows, parts)*ceil(op.Logits.Cols, line)), nil
	case schedule.Normalise:
		return extra + 8*p.mapLine*float64(ceil(op.X.Rows, parts)*ceil(op.X.Cols, line)), nil
	case schedule.NormaliseBackward:
		return extra + 16*p.mapLine*float64(ceil(op.X.Rows, parts)*ceil(op.X.Cols, line)), nil
	case schedule.Squares:
		return extra + p.mapLine*float64(ceil(op.A.Rows*op.A.Cols, line*parts)), nil
	case schedule.Update:
		return extra + (p.mapFunction+3*p.mapLine)*float64(ceil(op.Param.Rows*op.Param.Cols, line*parts)), nil
	case schedule.AllReduce: // the other replicas decide how long it takes
		return extra + p.move(schedule.Bytes(op), 1), nil
	}
	return 0, unsupported(op)
}
