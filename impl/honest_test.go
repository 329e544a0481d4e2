package impl_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// anyProblem draws a problem that d may run.
func anyProblem(d device.Device, rng *rand.Rand) rnn.Problem {
	upTo := func(n int) int { return int(math.Exp(rng.Float64() * math.Log(float64(n)+0.9))) }
	for {
		cells := cell.All()
		p := rnn.Problem{
			Cell: cells[rng.IntN(len(cells))], Pass: rnn.Pass(rng.IntN(2)), Hidden: upTo(200), Input: upTo(200), Layers: upTo(5),
			Batch: upTo(20), Steps: upTo(150), Direction: rnn.Direction(max(0, rng.IntN(7)-3)),
		}
		p.Precision = rnn.Precision(slices.Index(rnn.Precisions(), d.Info().Precision[rng.IntN(len(d.Info().Precision))]))
		switch rng.IntN(5) {
		case 0:
			p.Output = 1 + upTo(50)
		case 1:
			p.Output, p.OneHot = 1+upTo(50), true
		case 2:
			p.Symbols, p.Embedding, p.Output, p.Weighted = 1+upTo(30), 1+rng.IntN(p.Input), 2*upTo(20), rng.IntN(2) == 0
			p.Groups = 1 + rng.IntN(2)
		}
		switch rng.IntN(8) {
		case 0:
			p.Lengths = "uniform:50%"
		case 1:
			p.Resets = 1 + rng.IntN(100)
		case 2:
			if p.Pass == rnn.Train && p.Direction == rnn.FromFirst {
				p.History = upTo(20)
			}
		case 3:
			p.Heads = []int{2, 3, 4}[rng.IntN(3)]
			p.Hidden *= p.Heads
		case 4:
			p.Projection = 1 + rng.IntN(p.Hidden)
		}
		if p.Check() == nil && p.FLOPs() < 3e8 && (p.Precision != rnn.INT8 || p.Pass == rnn.Forward) {
			return p
		}
	}
}

// TestHonest: no technique is far from its tolerance at random points, whichever way it is checked.
func TestHonest(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	points := 300
	if testing.Short() {
		points = 40
	}
	used := map[string][]float64{} // parts of tolerances, by the way of checking
	rng := rand.New(rand.NewPCG(53, 5))
	for range points {
		p := anyProblem(d, rng)
		data := rnn.NewData(p, rng.Uint64(), 1+rng.IntN(4), rnn.Distributions()[rng.IntN(2)])
		want := oracle.Reference(data)
		for _, tech := range impl.Direct() {
			all := knob.OneAtATime(tech.Knobs(p))
			for _, k := range []knob.Params{nil, all[rng.IntN(len(all))]} {
				if err := honest(d, tech, k, data, want, used); err != nil && !errors.Is(err, schedule.ErrUnsupported) {
					t.Errorf("%v, %v %v: %v", p, tech.Name(), k, err)
				}
			}
		}
	}
	for way, parts := range used {
		slices.Sort(parts)
		t.Logf("%s: %d checks: median %.2g, 99 %% %.2g, most %.2g of the tolerance", way, len(parts), parts[len(parts)/2], parts[len(parts)*99/100], parts[len(parts)-1])
	}
}

// honest runs tech once, and checks its answer in each way that it can be checked.
func honest(d device.Device, tech rnn.Technique, k knob.Params, data *rnn.Data, want []oracle.Tensor, used map[string][]float64) error {
	plan, s, err := rnn.Layout(tech, data.Problem, k)
	if err != nil {
		return err
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		return err
	}
	if _, err := prog.Run(1); err != nil {
		return err
	}
	dev, _, err := oracle.Check(plan, prog, want)
	if err != nil {
		return err
	}
	if !dev.OK() {
		got, err := oracle.Read(plan, prog)
		if err != nil {
			return err
		}
		if dev, _, err = oracle.CompareAgain(data, got); err != nil {
			return err
		}

	}
	note := func(way string, dev oracle.Deviation) {
		used[way] = append(used[way], dev.Error/dev.Tolerance)
		if !dev.OK() {
			err = errors.Join(err, fmt.Errorf("%s: %v", way, dev))
		}
	}
	note("whole "+data.Problem.Precision.String(), dev)
	if states, _ := oracle.Steps(plan); states {
		got, apart, failed := oracle.ReadDistinct(plan, prog, data)
		if failed != nil {
			return failed
		}
		note("copies", apart)
		dev, _, failed := oracle.Stepwise{Seed: 1, FLOPs: 1e8}.Check(plan, prog, data, got)
		if failed != nil {
			return failed
		}
		if !dev.OK() && rnn.Kinked(data.Problem) {
			if dev, _, failed = (oracle.Stepwise{Seed: 1, FLOPs: 4e8}).CheckEach(plan, prog, data); failed != nil {
				return failed
			}
		}
		note("stepwise "+data.Problem.Precision.String(), dev)
	}
	return err
}
