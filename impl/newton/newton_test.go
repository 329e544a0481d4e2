package newton_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/worker"
	"rnnbench/impl/impltest"
	"rnnbench/impl/newton"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// problems are layers of cells whose units read their own states alone, and of cells with recurrent products,
// with all that layers may have.
func problems(t *testing.T) (ps []rnn.Problem) {
	list := []*cell.Cell{cell.GRU, cell.LSTM}
	for _, name := range []string{"gru-diag", "indrnn", "lstm-diag"} {
		c, err := cells.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	for i, c := range list {
		plain := rnn.Problem{Cell: c, Input: 5, Hidden: 17, Layers: 2, Batch: 3, Steps: 22}
		one := rnn.Problem{Cell: c, Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1, Precision: rnn.FP16}
		symbols, both, ragged, reset := plain, plain, plain, plain
		symbols.OneHot, symbols.Output, symbols.Precision = true, 4, rnn.BF16
		both.Direction, both.Hidden = rnn.BothWays, 9
		ragged.Lengths, ragged.Steps = "1+3+5", 5
		reset.Resets, reset.Layers = 30, 1
		if c.Recurrent > 0 {
			plain.Heads, plain.Hidden = 3, 15
		}
		for j, p := range []rnn.Problem{plain, one, symbols, both, ragged, reset} {
			if testing.Short() && (i+j)%2 > 0 {
				continue
			}
			if ps = append(ps, p); c.Newton != nil && c.Newton.Back != nil {
				p.Pass = rnn.Train
				ps = append(ps, p)
			}
		}
	}
	return ps
}

func open(t *testing.T, threads int) device.Device {
	d, err := cpu.Open(cpu.Options{Threads: threads, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// fewKnobs is the technique with few settings: schedules of many short blocks take long to verify.
type fewKnobs struct{ newton.Technique }

func (t fewKnobs) Knobs(p rnn.Problem) (few []knob.Knob) {
	for _, k := range t.Technique.Knobs(p) {
		switch k.Name {
		case "iterations":
			k.Values = k.Values[:1]
		case "inputbatch":
			k.Values = []int{k.Values[0], 4}
		}
		few = append(few, k)
	}
	return few
}

// TestNewton: iterations converge to the reference's answer, with its gradients. Half of the problems run on
// two workers.
func TestNewton(t *testing.T) {
	devices := []device.Device{open(t, 1), open(t, 2)}
	for i, p := range problems(t) {
		impltest.Run(t, devices[i%2], fewKnobs{}, []rnn.Problem{p})
	}
}

// TestResidual: where iterations of the states and of the gradient hardly change any more, the answer is right
// with its gradients. Where they cannot converge, they change.
func TestResidual(t *testing.T) {
	c, err := cells.Load("lstm-diag")
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, 2)
	for gain, converges := range map[int]bool{100: true, 400: true, 3200: false} {
		p := rnn.Problem{Cell: c, Input: 3, Hidden: 9, Layers: 2, Batch: 2, Steps: 130, Pass: rnn.Train, Gain: gain}
		data := rnn.NewData(p, 1, 2, "normal")
		want, right := oracle.Reference(data), false
		for n := 1; n <= 32; n *= 2 {
			residual, dev := iterated(t, d, data, want, n)
			near := residual <= oracle.Tolerance(p, false, 0)/10
			if right = right || near; near && dev.Error > oracle.Tolerance(p, true, 0) {
				t.Errorf("gain %d%%: after %d iterations the residual is %g and %v", gain, n, residual, dev)
			}
		}
		if right != converges {
			t.Errorf("gain %d%%: converged: %v", gain, right)
		}
	}
}

// iterated runs data with n iterations, and compares the answer with the one that is wanted.
func iterated(t *testing.T, d device.Device, data *rnn.Data, want []oracle.Tensor, n int) (float64, oracle.Deviation) {
	t.Helper()
	plan, s, err := rnn.Layout(newton.Technique{}, data.Problem, knob.Params{"iterations": n})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	residual, err := oracle.Residual(plan, prog)
	if err != nil {
		t.Fatal(err)
	}
	got, err := oracle.Read(plan, prog)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := oracle.Compare(plan.Problem, got, want)
	if err != nil {
		t.Fatal(err)
	}
	return residual, dev
}

// TestGPU runs them on a GPU, through the worker that RNNBENCH_CUDA names.
func TestGPU(t *testing.T) {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	d, err := worker.Open(worker.Options{Device: "cuda:0", Command: func() *exec.Cmd { return exec.Command(path) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	impltest.Run(t, d, fewKnobs{}, problems(t))
}

// TestDeclines: linear recurrences need no iterations. Cells whose steps do not become linear, and training of
// cells whose gradient no scan computes, are declined.
func TestDeclines(t *testing.T) {
	for _, p := range []rnn.Problem{
		{Cell: cell.GILR}, {Cell: cell.RGLRU}, {Cell: cell.LSLSTM}, {Cell: cell.SLSTM}, {Cell: cell.LSTM, Pass: rnn.Train}, {Cell: cell.LSTM, Projection: 2},
	} {
		p.Input, p.Hidden, p.Layers, p.Batch, p.Steps = 3, 4, 1, 1, 5
		if _, _, err := rnn.Layout(newton.Technique{}, p, nil); !errors.Is(err, schedule.ErrUnsupported) {
			t.Errorf("%v: %v", p, err)
		}
	}
}
