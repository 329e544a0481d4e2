package cuda

import (
	"errors"
	"slices"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Sources returns the launches of s and their kernels' texts, with knobs k on a GPU of properties
// p.
func Sources(s *schedule.Schedule, k knob.Params, p driver.Properties) ([]*driver.Launch, []string, error) {
	var texts []string
	var launches []*driver.Launch
	steps, err := launching(s, k, p)
	for _, step := range steps {
		launches = append(launches, step.Launch)
		texts = append(texts, codegen.Common()+step.Source.Text)
	}
	return launches, texts, err
}

// Expected returns the predicted seconds of each launch of s; 0: none.
func Expected(s *schedule.Schedule, k knob.Params, p driver.Properties) (seconds []float64, err error) {
	steps, err := launching(s, k, p)
	for _, step := range steps {
		seconds = append(seconds, step.Seconds)
	}
	return seconds, err
}

// Early reports of each launch of s whether it may begin before the previous one ends.
func Early(s *schedule.Schedule, k knob.Params, p driver.Properties) (early []bool, err error) {
	steps, err := launching(s, k, p)
	for _, step := range steps {
		early = append(early, step.Early)
	}
	return early, err
}

// HalvesEnd returns where in the memory of s's program the last partial sums of split-fp16 products
// end, and the program's size.
func HalvesEnd(s *schedule.Schedule, p driver.Properties) (end, all int64, err error) {
	b, err := lower.New(s, nil, p, nil)
	if err != nil {
		return 0, 0, err
	}
	launches, _, err := Sources(s, nil, p)
	for _, l := range launches {
		if l.Name != "split_fp16" {
			continue
		}
		m, n, k, share, at := int64(l.Args[0]), int64(l.Args[1]), int(l.Args[2]), int(l.Args[4]), int64(l.Args[8])
		if parts := ints.CeilDiv(ints.CeilDiv(k, gemm.StageTerms), share); parts > 1 {
			end = max(end, at+4*int64(parts)*m*n)
		}
	}
	return end, b.Size(), err
}

// Products returns the products of s by the vendor's library.
func Products(s *schedule.Schedule, k knob.Params, p driver.Properties) (out []*driver.Product, err error) {
	all, err := commands(s, k, p)
	for _, c := range all {
		if c.Product != nil {
			out = append(out, c.Product)
		}
	}
	return out, err
}

// launching returns the commands of s that are launches.
func launching(s *schedule.Schedule, k knob.Params, p driver.Properties) (out []launch.Command, err error) {
	all, err := commands(s, k, p)
	return slices.DeleteFunc(all, func(c launch.Command) bool { return c.Launch == nil }), err
}

// commands returns all commands of s.
func commands(s *schedule.Schedule, k knob.Params, p driver.Properties) ([]launch.Command, error) {
	b, err := lower.New(s, k, p, nil)
	if err != nil {
		return nil, err
	}
	_, nodes, err := b.Emit(0)
	return slices.Concat(nodes...), err
}

// Portions returns the portions in which a split product is formed.
func Portions(op schedule.Gemm, kept bool, room int64, terms int) []schedule.Gemm {
	return gemm.Portions(op, kept, room, terms)
}

// LimitPacked limits the packed operands of a product to so many bytes, until undo is called.
func LimitPacked(bytes int64) (undo func()) {
	old := gemm.SplitRoom
	gemm.SplitRoom = bytes
	return func() { gemm.SplitRoom = old }
}

// Groupings lists the configurations of a layer, the cheapest first, as knobs and as text.
func Groupings(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) (knobs []knob.Params, texts []string) {
	for _, t := range persistent.Candidates(c, hidden, batch, weights, k, p) {
		knobs = append(knobs, t.Knobs)
		texts = append(texts, t.Describe())
	}
	return knobs, texts
}

// Gradients lists the configurations of the gradient of a layer of c.
func Gradients(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) (texts []string) {
	for _, t := range persistent.BackwardCandidates(c, hidden, batch, weights, k, p) {
		texts = append(texts, t.Describe())
	}
	return texts
}

// Moved returns the bytes that the kernel of a scan reads and writes per unit and step, in single
// precision.
func Moved(op schedule.Op) int {
	return scan.Cells{}.Scan(op).Traffic()
}

// Dispatch returns the cost of launches on d, as far as it was measured.
func Dispatch(d *Device) lower.Dispatch { return d.dispatch }

// Served returns what the host has received after n calls, as the GPU stores it.
func Served(on device.Program, c device.Calls, n int) (out []byte, err error) {
	s, err := serve(on.(*program), c)
	defer func() { err = errors.Join(err, s.close()) }()
	for i := 0; err == nil && i < n; i++ {
		err = s.once(i)
	}
	return slices.Clone(s.out), err
}
