package impl_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// randomCell writes a file of equations. Activations around sums keep states small, and a mean keeps the
// output's activation where its slope is not near 0.
func randomCell(rng *rand.Rand) string {
	var b strings.Builder
	states := []string{"h", "c", "d"}[:1+rng.IntN(3)]
	known := append([]string{}, states...) // values that an equation may use
	pick := func() string { return known[rng.IntN(len(known))] }
	fmt.Fprintf(&b, "state %s\n", strings.Join(states, ", "))
	if rng.IntN(3) == 0 {
		fmt.Fprintln(&b, "weight u")
		known = append(known, "u")
	}
	var expression func(depth int) string
	expression = func(depth int) string {
		if depth == 0 {
			return pick()
		}
		a := func() string { return expression(depth - 1) }
		switch rng.IntN(12) {
		case 0:
			return fmt.Sprintf("(%s + %s)", a(), a())
		case 1:
			return fmt.Sprintf("(%s - %s)", a(), a())
		case 2:
			return fmt.Sprintf("%s * %s", a(), a())
		case 3:
			return fmt.Sprintf("(1 - %s)", a())
		case 4:
			return fmt.Sprintf("%.2g * %s", rng.NormFloat64(), a())
		case 5:
			return fmt.Sprintf("tanh(%s) / (0.5 + softplus(%s))", a(), a())
		case 6:
			return fmt.Sprintf("exp(-softplus(%s))", a())
		case 7:
			return fmt.Sprintf("-sigmoid(%s)", a())
		case 8:
			return fmt.Sprintf("relu(%s)", a())
		case 9:
			return fmt.Sprintf("max(%s, %s)", a(), a())
		case 10:
			return fmt.Sprintf("(abs(%s) - min(%s, 0.3))", a(), a())
		}
		return fmt.Sprintf("sqrt(0.5 + sigmoid(%s))", a())
	}
	inner, through := "", states[rng.IntN(len(states))]
	for i := range 1 + rng.IntN(4) {
		sum := "W x"
		switch rng.IntN(5) {
		case 0, 1:
			sum += " + R " + through
		case 2:
			if inner == "" && i > 0 {
				inner = fmt.Sprintf("tanh(%s * %s)", pick(), pick())
			}
			if inner != "" {
				sum += fmt.Sprintf(" + R (%s)", inner)
			}
		case 3:
			sum += fmt.Sprintf(" + %s * (R %s)", pick(), through)
		}
		if rng.IntN(2) == 0 {
			sum += " + " + expression(1)
		}
		fmt.Fprintf(&b, "gate g%d = %s(%s + b)\n", i, []string{"tanh", "sigmoid", "relu"}[rng.IntN(3)], sum)
		known = append(known, fmt.Sprintf("g%d", i))
	}
	for i := range rng.IntN(3) {
		fmt.Fprintf(&b, "t%d = %s\n", i, expression(2))
		known = append(known, fmt.Sprintf("t%d", i))
	}
	for _, s := range states[1:] {
		fmt.Fprintf(&b, "%s' = tanh(%s)\n", s, expression(2))
		known = append(known, s+"'")
	}
	fmt.Fprintf(&b, "h' = tanh(%.3f * (%s))\n", 1/float64(len(known)), strings.Join(known, " + "))
	return b.String()
}

// TestRandomCells: every technique that takes a random cell computes it right, forward and in training.
func TestRandomCells(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cells := 60
	if testing.Short() {
		cells = 8
	}
	ran := map[string]int{}
	for seed := range uint64(cells) {
		rng := rand.New(rand.NewPCG(seed, 9))
		text := randomCell(rng)
		c, err := equations.Parse("random.cell", "random", text)
		if err != nil {
			t.Errorf("%v, of\n%s", err, text)
			continue
		}
		p := rnn.Problem{Cell: c, Input: 1 + rng.IntN(9), Hidden: 1 + rng.IntN(40), Layers: 1 + rng.IntN(2), Batch: 1 + rng.IntN(5), Steps: 1 + rng.IntN(12),
			Pass: rnn.Pass(rng.IntN(2))}
		data := rnn.NewData(p, seed, 1, "normal")
		want := oracle.Reference(data)
		for _, tech := range impl.Direct() {
			switch err := computes(d, tech, data, want); {
			case err == nil:
				ran[tech.Name()]++
			case !errors.Is(err, schedule.ErrUnsupported):
				t.Errorf("%s of %v: %v, of\n%s", tech.Name(), p, err, text)
			}
		}
	}
	if ran["naive"] != cells || ran["cudnnstyle"] != cells || ran["persistent"] == 0 {
		t.Errorf("of %d cells techniques ran %v", cells, ran)
	}
}

// computes returns an error if a technique's answer is wrong.
func computes(d device.Device, tech rnn.Technique, data *rnn.Data, want []oracle.Tensor) error {
	plan, s, err := rnn.Layout(tech, data.Problem, knob.Params{})
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
	deviation, _, err := oracle.Check(plan, prog, want)
	if err == nil && !deviation.OK() {
		err = fmt.Errorf("%v", deviation)
	}
	return err
}
