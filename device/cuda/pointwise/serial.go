package pointwise

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// SerialKnobs returns the knob of serial scans if s has others.
func SerialKnobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		if schedule.Scans(op) && !schedule.SerialScan(op) {
			return []knob.Knob{SerialKnob()}
		}
	}
	return nil
}

// SerialKnob selects the serial scan, a rival to compare parallel scans with.
func SerialKnob() knob.Knob {
	return knob.Knob{Name: "scanserial", Doc: "1: scan by one kernel with a thread per channel that loops over time, the rival of a parallel scan", Values: []int{0}, Max: 1, Internal: true}
}

// A serial is a scan with one thread per channel.
type serial struct {
	schedule.Sequence
	grad     *schedule.SequenceGrad // of a backward pass
	products schedule.View          // recurrent products, which are known beforehand
	program  cell.Program
	steps    *cell.Recurrence
	quick    bool // activations in few operations: the scan is no rival
	name     string
}

// SerialScan launches op, a scan or its gradient, as a serial scan.
func SerialScan(t *launch.Target, op schedule.Op) launch.Command {
	s := newSerial(op)
	groups := t.Groups(s.program, s.view)
	words := []any{"serial ", s.name, " ", s.quick, " ", s.Keep.Empty()}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	const threads = 128 // few, so that few channels are on many multiprocessors
	args := append([]uint64{uint64(s.Steps), uint64(s.Batch()), uint64(s.Hidden())}, t.Arguments(groups)...)
	if !s.Keep.Empty() {
		args = append(args, t.Arguments([]codegen.Group{{View: s.Keep}})...)
	}
	c := launch.New(t.Source(func() codegen.Source { return s.source(groups) }, words...),
		[3]int{ints.CeilDiv(s.Batch()*s.Hidden(), threads), 1, 1}, [3]int{threads, 1, 1}, args...)
	c.Early = t.Properties.Capability >= 90
	c.Seconds = s.seconds(op)
	return c
}

func newSerial(op schedule.Op) *serial {
	var s serial
	switch op := op.(type) {
	case schedule.Scan:
		r := op.Recurrence()
		s = serial{Sequence: op.Sequence, products: op.R, program: r.Inference, steps: r, name: "scan_serial"}
		if op.Train {
			s.program, s.name = r.Forward, "scan_serial_train"
		}
	case schedule.ScanBackward:
		r := op.Recurrence()
		s = serial{Sequence: op.Sequence, grad: &op.SequenceGrad, program: r.Backward, steps: r, name: "scan_serial_backward"}
	default:
		panic(fmt.Sprintf("cuda: %s is no scan", op.Name()))
	}
	s.quick, s.name = schedule.SerialScan(op), codegen.KernelName(s.name, s.Cell.Name)
	return &s
}

// view returns the matrix that has r.
func (s *serial) view(r cell.Ref) schedule.View {
	if r.Kind == cell.R {
		return s.products
	}
	return codegen.Whole(&s.Sequence, s.grad, r)
}

// held reports whether r stays in a register over all steps: carried values, and values that are
// the same at all steps.
func (s *serial) held(r cell.Ref) bool {
	if r.Kind == cell.Prev && s.grad == nil {
		return slices.Contains(s.steps.Carried, r.Index)
	}
	return r.Kind.Broadcast() || r.Kind == cell.DNext || r.Kind == cell.DPeep
}

// Constants of the predicted time. Cycles of operations are latencies of an H200 as published; no
// serial scan was fitted to them.
const (
	serialStart  = 3e-6    // seconds from the start of the kernel to the end of its first steps
	serialRate   = 3e12    // bytes a second
	serialClock  = 1.755e9 // cycles a second
	serialLoop   = 16      // cycles of a step besides its chain
	serialSimple = 4       // cycles of an addition or multiplication
	serialSlow   = 50      // cycles of a function: an exponential and a reciprocal, one after the other
)

// seconds predicts the time of op: the chain of each step, or the bytes.
func (s *serial) seconds(op schedule.Op) float64 {
	chain := s.steps.Chain(s.program, func(o cell.Op) float64 {
		switch o {
		case cell.Copy, cell.Zero, cell.Const, cell.Neg:
			return 0
		case cell.Sigmoid, cell.Tanh, cell.Exp, cell.Softplus, cell.Div, cell.Sqrt:
			return serialSlow
		}
		return serialSimple
	})
	return serialStart + max(float64(s.Steps)*(chain+serialLoop)/serialClock, float64(schedule.Bytes(op))/serialRate)
}

// resets spells what clears states, or their gradients, where sequences begin anew before a step. It
// is empty if none does.
func (s *serial) resets(reads []cell.Ref) string {
	if s.Keep.Empty() {
		return ""
	}
	var b strings.Builder
	clear := func(row string, of func(cell.Ref) bool) {
		fmt.Fprintf(&b, "      if (keep[(%s) * ld_keep] == 0) {\n", row)
		for _, r := range reads {
			if of(r) {
				fmt.Fprintf(&b, "        %v = 0;\n", r)
			}
		}
		b.WriteString("      }\n")
	}
	clear("row", func(r cell.Ref) bool { return r.Kind == cell.Prev || r.Kind == cell.R })
	if s.grad != nil {
		clear("row + batch", func(r cell.Ref) bool { return r.Kind == cell.DNext && slices.Contains(s.steps.Carried, r.Index) })
	}
	return b.String()
}

// quickFunctions are activations of few operations, since a step waits for them. A tangent near 0
// keeps digits that twice a sigmoid, less 1, would lose.
const quickFunctions = `namespace quick {
__device__ __forceinline__ float sigmoid(float v) { return reciprocal(1 + exp2_quick(-1.4426950409f * v)); }
__device__ __forceinline__ float tanhf(float v) {
  const float e = exp2_quick(at_most(60, -2.8853900818f * v)); // finite
  return (1 - e) * reciprocal(1 + e);
}
}
`

// chunk is how many steps ahead a thread loads.
const chunk = 8

// source returns the kernel's text.
func (s *serial) source(groups []codegen.Group) codegen.Source {
	reads, writes := s.program.Vectors()
	row := func(r cell.Ref) string {
		switch {
		case r.Kind.Broadcast():
			return "0"
		case s.held(r):
			return "n"
		case r.Kind == cell.Next:
			return "row + batch"
		}
		return "row"
	}
	var held, stepped []cell.Ref
	for _, r := range reads {
		if s.held(r) {
			held = append(held, r)
		} else {
			stepped = append(stepped, r)
		}
	}
	at := "i"
	if s.grad != nil {
		at = "(steps - 1 - i)"
	}
	var b strings.Builder
	keep := ""
	if !s.Keep.Empty() {
		keep = ", const float* keep, int ld_keep"
	}
	if s.quick {
		b.WriteString(quickFunctions)
	}
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(128) %s(int steps, int batch, int hidden%s%s) {\n", s.name, codegen.Params(groups), keep)
	if s.quick {
		b.WriteString("  using quick::sigmoid;\n  using quick::tanhf;\n")
	}
	b.WriteString("  begin_next();\n  wait_previous();\n")
	b.WriteString("  const long long channel = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n  if (channel >= (long long)batch * hidden) return;\n")
	b.WriteString("  const int n = (int)(channel / hidden), u = (int)(channel % hidden);\n")
	b.WriteString(codegen.Declare("  ", held, row))
	// Loads run a chunk of steps ahead, since no step reads what another writes.
	for _, r := range stepped {
		fmt.Fprintf(&b, "  float now_%v[%d], next_%v[%d];\n", r, chunk, r, chunk)
	}
	load := func(to, from string) {
		fmt.Fprintf(&b, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n      const int i = %s + k;\n      if (i >= steps) break;\n      const long long row = (long long)%s * batch + n;\n", chunk, from, at)
		for _, r := range stepped {
			fmt.Fprintf(&b, "      %s_%v[k] = widen(%s);\n", to, r, codegen.Place(r, row(r)))
		}
		b.WriteString("    }\n")
	}
	load("next", "0")
	fmt.Fprintf(&b, "  for (int from = 0; from < steps; from += %d) {\n#pragma unroll\n    for (int k = 0; k < %d; k++) {\n", chunk, chunk)
	for _, r := range stepped {
		fmt.Fprintf(&b, "      now_%v[k] = next_%v[k];\n", r, r)
	}
	b.WriteString("    }\n")
	load("next", fmt.Sprintf("from + %d", chunk))
	fmt.Fprintf(&b, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n      const int i = from + k;\n      if (i >= steps) break;\n      const long long row = (long long)%s * batch + n;\n", chunk, at)
	for _, r := range stepped {
		fmt.Fprintf(&b, "      float %v = now_%v[k];\n", r, r)
	}
	b.WriteString(s.resets(reads))
	b.WriteString(codegen.Statements(s.program, "      ", reads))
	for _, r := range writes {
		if !s.held(r) {
			fmt.Fprintf(&b, "      narrow(%s, %v);\n", codegen.Place(r, row(r)), r)
		}
	}
	b.WriteString("    }\n")
	b.WriteString("  }\n")
	for _, r := range writes {
		if s.grad != nil && s.held(r) {
			fmt.Fprintf(&b, "  narrow(%s, %v);\n", codegen.Place(r, row(r)), r)
		}
	}
	b.WriteString("}\n")
	return codegen.Source{Name: s.name, Text: b.String()}
}
