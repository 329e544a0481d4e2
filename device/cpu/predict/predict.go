// Package predict forecasts how long a CPU takes for a schedule, operation by operation.
//
// It is a cost model and decides nothing. The device says how its workers share each operation (see
// Program), and the model prices that at the rates of a machine. So any machine can predict for any
// other one.
package predict

import "rnnbench/rnn/schedule"

// Error is the error of predictions on the random layers that the rates were fitted to.
const Error = 0.25

// Seconds returns the time of a run of p.
func Seconds(p Program, on Machine) (float64, error) {
	f := newForecast(p, on)
	taken, err := f.operations()
	if err != nil {
		return 0, err
	}
	if len(p.Teams) == 1 {
		sum := 0.0
		for _, t := range taken {
			sum += t
		}
		return sum, nil
	}
	return f.streams(taken), nil
}

// Operations returns the seconds of each node of p, run by its team without waiting for others.
func Operations(p Program, on Machine) ([]float64, error) { return newForecast(p, on).operations() }

// A forecast predicts the time of a run, operation by operation.
type forecast struct {
	Program
	core

	touched int64                // bytes read and written so far
	wasRead []int64              // per matrix, touched when its weights were last read or written; 0: never
	known   map[likeness]float64 // seconds of operations already predicted
}

func newForecast(p Program, on Machine) *forecast {
	return &forecast{Program: p, core: newCore(on), wasRead: make([]int64, len(p.Schedule.Matrices)), known: map[likeness]float64{}}
}

// operations returns the seconds of each node, run by its team without waiting for others.
func (p *forecast) operations() ([]float64, error) {
	taken := make([]float64, len(p.Schedule.Nodes))
	for i, n := range p.Schedule.Nodes {
		if p.Absorbed[i] {
			continue
		}
		members := p.Teams[n.Stream%len(p.Teams)]
		if j, ok := p.Pairs[i]; ok {
			taken[i] -= p.packing(p.Schedule.Nodes[j].Op.(schedule.Gemm), members)
		}
		if band, ok := p.Formed[i]; ok {
			taken[i] = p.formed(n.Op.(schedule.Gemm), p.Schedule.Nodes[i+1].Op.(schedule.Persistent), band, members)
			continue
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
	teams := len(p.Teams)
	ready, ends := make([]float64, teams), make([]float64, len(taken))
	last := 0.0
	for i, n := range p.Schedule.Nodes {
		team := n.Stream % teams
		at := ready[team]
		for _, j := range n.Wait {
			if of := p.Schedule.Nodes[j].Stream % teams; of != team {
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
	sec, err := p.seconds(op, p.Workers.Takers(op, members), key.from)
	if ok && err == nil {
		p.known[key] = sec
	}
	return sec, err
}

// seconds predicts op on so many workers. from is the level of the memory that weights come from.
func (p *forecast) seconds(op schedule.Op, parts, from int) (float64, error) {
	extra := p.start + p.handover*p.Workers.Meeting(parts)
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
		return extra + p.persistent(op, p.Workers.Band(op, parts), parts), nil
	case schedule.PersistentBackward:
		return extra + p.persistentBackward(op, p.Workers.Band(op, parts), parts), nil
	case schedule.Scan, schedule.ScanBackward:
		return extra + p.scan(p.Workers.Scan(op, parts)), nil
	case schedule.Gather, schedule.Scatter:
		return extra + p.move(schedule.Bytes(op), parts), nil
	case schedule.SoftmaxLoss:
		return extra + (p.mapFunction+6*p.mapLine)*float64(ceil(op.Logits.Rows, parts)*ceil(op.Logits.Cols, line)), nil
	case schedule.CTCLoss:
		return extra + p.ctcLoss(op, parts), nil
	case schedule.Normalise:
		return extra + 8*p.mapLine*float64(ceil(op.X.Rows, parts)*ceil(op.X.Cols, line)), nil
	case schedule.NormaliseBackward:
		return extra + 16*p.mapLine*float64(ceil(op.X.Rows, parts)*ceil(op.X.Cols, line)), nil
	case schedule.Squares:
		return extra + p.mapLine*float64(ceil(op.A.Rows*op.A.Cols, line*parts)), nil
	case schedule.Change:
		return extra + 2*p.mapLine*float64(ceil(op.A.Rows*op.A.Cols, line)), nil
	case schedule.Update:
		return extra + (p.mapFunction+3*p.mapLine)*float64(ceil(op.Param.Rows*op.Param.Cols, line*parts)), nil
	case schedule.AllReduce: // the other replicas decide how long it takes
		return extra + p.move(schedule.Bytes(op), 1), nil
	}
	return 0, p.Workers.Unsupported(op)
}
