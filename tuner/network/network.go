// Package network trains a network given as a graph, with parallel steps and without. It checks both
// ways against the reference and times them.
package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/impl/scc"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// A Way is one of the two ways to train a network.
type Way struct {
	Name      string
	Seconds   float64         // per minibatch, the median
	Ratio     record.Interval // how many times as fast as the first way, paired by rounds
	Deviation oracle.Deviation
}

// A Result holds the outcome of both ways.
type Result struct {
	Name string // of the network
	Size graph.Size
	Ways [2]Way
}

// A WrongError says that a way gives a wrong answer.
type WrongError struct {
	Name      string
	Deviation oracle.Deviation
}

func (e *WrongError) Error() string { return fmt.Sprintf("%s is wrong: %v", e.Name, e.Deviation) }

// Train trains g on d, first with everything step by step, then with only loops step by step. It
// checks both against the reference and times them in turns. free is the memory that it may take, in
// bytes; 0: any. The error is a *WrongError if an answer is wrong.
func Train(d device.Device, g *graph.Graph, size graph.Size, seed uint64, free int64) (*Result, error) {
	size.Train = true
	networks, err := layBoth(d, g, size, free)
	if err != nil {
		return nil, err
	}
	in := g.Draw(size, rand.New(rand.NewPCG(seed, 0)))
	want, err := g.Reference(size, in)
	if err != nil {
		return nil, err
	}
	r := &Result{Name: g.Name, Size: size, Ways: [2]Way{{Name: "step by step"}, {Name: "only loops step by step"}}}
	var programs [2]device.Program
	for intra, n := range networks {
		if programs[intra], err = d.Compile(n.Schedule, nil); err != nil {
			return nil, err
		}
		defer programs[intra].Close()
		got, err := answer(n, programs[intra], in)
		if err != nil {
			return nil, err
		}
		if r.Ways[intra].Deviation, err = oracle.CompareGraph(g, size, got, want); err != nil {
			return nil, err
		}
		if off := r.Ways[intra].Deviation; !off.OK() {
			return nil, &WrongError{g.Name, off}
		}
	}
	samples, err := takeTurns(programs[:])
	if err != nil {
		return nil, err
	}
	for i, s := range samples {
		r.Ways[i].Ratio = record.Paired(s, samples[0])
	}
	for i, s := range samples {
		slices.Sort(s)
		r.Ways[i].Seconds = s[len(s)/2]
	}
	return r, nil
}

// answer runs prog once, and returns its answer to in.
func answer(n *scc.Network, prog device.Program, in graph.Values) (graph.Values, error) {
	if err := errors.Join(n.Write(prog, in), prog.Prepare()); err != nil {
		return nil, err
	}
	if _, err := prog.Run(1); err != nil {
		return nil, err
	}
	return n.Read(prog)
}

// Table shows the two ways side by side. model is the device's model.
func (r *Result) Table(model string) *table.Table {
	t := &table.Table{
		Title: fmt.Sprintf("%s · B=%d T=%d history=%d · %s", r.Name, r.Size.Batch, r.Size.Steps, r.Size.History, model),
		Columns: []table.Column{
			{Name: "training", Key: "training"}, {Name: "time per minibatch", Key: "time_s", Right: true},
			{Name: "sequence steps per second", Key: "events_per_s", Right: true}, {Name: "speed-up", Key: "speedup", Right: true},
			{Key: "speedup_lo"}, {Key: "speedup_hi"}, {Name: "largest error", Key: "error"},
		},
	}
	if r.Ways[1].Ratio.Known() && !r.Ways[1].Ratio.Leads() && r.Ways[1].Ratio.Hi >= 1/record.LeastLead {
		t.Notes = []string{"a tie: the interval of the speed-up covers 1, or the lead is below 1 %"}
	}
	for _, w := range r.Ways {
		rate, up := float64(r.Size.Batch*r.Size.Steps)/w.Seconds, w.Ratio
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(w.Name), table.Number(w.Seconds, quantity.SI(w.Seconds, "s")), table.Number(rate, quantity.SI(rate, "/s")),
			table.Number(up.Value, quantity.Times(up)), table.Number(up.Lo, ""), table.Number(up.Hi, ""), table.Text(fmt.Sprintf("%.2g × the tolerance, in %s", w.Deviation.Error/w.Deviation.Tolerance, w.Deviation.Tensor)),
		})
	}
	return t
}

// takeTurns times programs in turns and returns the samples of each, in seconds per run. Samples of one
// index are of one round.
func takeTurns(programs []device.Program) ([][]float64, error) {
	const rounds, sample = 9, 10 * time.Millisecond
	samples := make([][]float64, len(programs))
	runs := make([]int, len(programs))
	for range rounds {
		for i, prog := range programs {
			if runs[i] == 0 {
				b, err := prog.Run(1)
				if err != nil {
					return nil, err
				}
				runs[i] = 1 + int(sample/max(b.Wall, 1))
			}
			b, err := prog.Run(runs[i])
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], b.Wall.Seconds()/float64(runs[i]))
		}
	}
	return samples, nil
}

// layBoth lays g out step by step and with parallelism between steps. It returns an error if both
// together do not fit in memory.
func layBoth(d device.Device, g *graph.Graph, size graph.Size, free int64) (networks [2]*scc.Network, err error) {
	need := g.Footprint(size)
	fits := func() error {
		if free > 0 && need > float64(free) {
			return fmt.Errorf("training %s needs %s, but only %s is available", g.Name, quantity.Bytes(need), quantity.Bytes(float64(free)))
		}
		return nil
	}
	for intra := range networks {
		if err := fits(); err != nil { // laying out takes memory as well
			return networks, err
		}
		if networks[intra], err = scc.Layout(g, size, knob.Params{"intra": intra}); err != nil {
			return networks, err
		}
		memory, err := d.Memory(networks[intra].Schedule, nil)
		if err != nil {
			return networks, err
		}
		need += float64(memory)
	}
	return networks, fits()
}
