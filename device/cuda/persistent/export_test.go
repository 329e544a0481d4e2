package persistent

import (
	"os"
	"path/filepath"
	"regexp"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Division is how a kernel divides a layer or its gradient.
type Division struct {
	Kernel, Sizes                     string
	Blocks, Threads, Shared, Together int
	Room                              int64 // bytes of memory for a group's exchanges
	States                            int   // values that a thread carries from step to step
}

// Divisions lists the divisions of a layer of c, or of its gradient.
func Divisions(c *cell.Cell, hidden, batch int, weights driver.Element, exact, gradient bool, k knob.Params, p driver.Properties) (out []Division) {
	b := Chooser{Target: &launch.Target{Knobs: k, Properties: p}}
	l := Layer{Cell: c, Hidden: hidden, Gates: c.Recurrent, Batch: batch, Weights: weights, Exact: exact, Within: 0, Inputs: 0}
	room, states := BackwardExchangeBytes(hidden, batch, p), len(kernels.Carried(c))
	if !gradient {
		r := kernels.NewRecurrence(&schedule.Sequence{Cell: c}, c.Inference)
		l.Within, l.Inputs = within(c), r.Inputs()
		room, states = ExchangeBytes(hidden, batch), len(c.States)
	}
	all, _ := b.overShares(func(b *Chooser) ([]Config, string) { return b.configs(l, gradient) })
	for _, t := range all {
		out = append(out, Division{Kernel: t.variant.Name, Sizes: t.sizes, Blocks: t.blocks, Threads: t.threads, Shared: t.shared, Together: t.together, Room: launch.Alignment + room + t.memory, States: states})
	}
	return out
}

// Within says how the state of c that is multiplied by weights is bounded.
func Within(c *cell.Cell) int { return within(c) }

// Unsaid lists the constants of v's kernel that Words does not describe.
func Unsaid(v *Variant) (all []string) {
	for _, header := range v.Headers {
		text, err := os.ReadFile(filepath.Join("kernels", header+".cuh"))
		if err != nil {
			return []string{err.Error()}
		}
		for _, found := range configured.FindAllStringSubmatch(string(text), -1) {
			if v.describe(found[1]) == "" && !saidElsewhere[found[1]] {
				all = append(all, found[1])
			}
		}
	}
	return all
}

var configured = regexp.MustCompile(`= Config::(\w+);`)
