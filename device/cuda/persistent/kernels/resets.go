package kernels

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// With resets, a thread keeps two more values with a unit's states and reads one more input: the
// sequence's flag, Keep of the step after. The state that is multiplied by weights goes to other
// blocks. So it is set to 0 at the end of a step if the sequence begins anew at the next step. The
// first further value keeps what it was: the step's result. The second says whether the other states
// are read as 0.
//
// Flags are read ahead of a step, like the other inputs. A gradient reads those of its step and of
// the step after.

// resets reports whether the layer has resets.
func (r *Recurrence) resets() bool { return !r.op.Keep.Empty() }

// more returns how many values there are besides states.
func (r *Recurrence) more() int {
	if r.resets() {
		return 2
	}
	return 0
}

// shown spells the multiplied state as a result; goesOn spells whether the sequence goes on, not
// resets.
func (r *Recurrence) shown() string  { return fmt.Sprintf("state[%d]", len(r.op.Cell.States)) }
func (r *Recurrence) goesOn() string { return fmt.Sprintf("state[%d]", len(r.op.Cell.States)+1) }

// lastInput spells the place of the last of a unit's inputs: the flag comes after those of all gates.
func (r *Recurrence) lastInput() string {
	if r.resets() {
		return fmt.Sprint(len(r.op.Cell.Gates))
	}
	return "0"
}

// flags spells which input is a flag, where the flag of a step is, and the value of an input. p
// prints a line.
func (r *Recurrence) flags(p func(format string, args ...any)) {
	is, at, stride, value := "false", "nullptr", "0", "widen(step[at(g)])"
	if r.resets() {
		is, at, stride, value = "g == "+r.lastInput(), "&"+keepPlace("t"), "(long long)batch * ld_g_keep", "flag(g) ? *kept(t + 1, batch, n) : "+value
	}
	p("  __device__ static constexpr bool flag(int g) { return %s; }", is)
	p("  __device__ const float* kept(int t, int batch, int n) const { return %s; }", at)
	p("  __device__ long long kept_stride(int batch) const { return %s; }", stride)
	p("  __device__ float value(const Input* step, int g, int t, int batch, int n) const { return %s; }", value)
}

// prior spells a state before a step.
func (r *Recurrence) prior(s int) string {
	if r.resets() && s != r.op.Cell.Through {
		return fmt.Sprintf("%s != 0 ? state[%d] : 0", r.goesOn(), s)
	}
	return fmt.Sprintf("state[%d]", s)
}

// begin spells a unit's further values before the first step. end spells those after a step, given
// how many other inputs the rest reads. p prints a line.
func (r *Recurrence) begin(p func(format string, args ...any)) {
	if r.resets() {
		through := r.op.Cell.Through
		p("    %s = widen(g_keep[(long long)n * ld_g_keep]);", r.goesOn())
		p("    %s = state[%d];", r.shown(), through)
		p("    if (%s == 0) state[%d] = 0;", r.goesOn(), through)
	}
}

func (r *Recurrence) end(p func(format string, args ...any), free int) {
	if r.resets() {
		// A plain copy has the compiler copy the next flag at the start of a step, and wait there for its read.
		p("    %s = __uint_as_float(fresh(input[%d] != 0 ? 0x3f800000 : 0));", r.goesOn(), free)
		p("    state[%d] = %s != 0 ? %s : 0;", r.op.Cell.Through, r.goesOn(), r.shown())
	}
}

// keepGroup returns the argument for the column; none without resets.
func keepGroup(t *launch.Target, s *schedule.Sequence) []codegen.Group {
	if s.Keep.Empty() {
		return nil
	}
	return []codegen.Group{{Name: "g_keep", Element: t.Element(s.Keep), View: s.Keep}}
}

// keepPlace spells the column's value of a step for sequence n.
func keepPlace(step string) string {
	return fmt.Sprintf("g_keep[((long long)%s * batch + n) * ld_g_keep]", step)
}

// inputsBack spells what a gradient reads of a step of the forward pass: with resets, also the flags
// of the step and of the step after, which come last. Nothing waits for a flag here; see keptBack. p
// prints a line.
func inputsBack(p func(format string, args ...any), reads []cell.Ref, resets bool) {
	for i, r := range reads {
		p("    x[%d] = widen(%s);", i, codegen.Place(r, rowBack(r)))
	}
	if resets {
		p("    x[%d] = widen(%s);", len(reads), keepPlace("t"))
		p("    x[%d] = widen(%s);", len(reads)+1, keepPlace("(t + 1)"))
	}
}

// keptBack spells the values of inputs: a state before the step is 0 if the sequence begins anew. p
// prints a line.
func keptBack(p func(format string, args ...any), reads []cell.Ref, resets bool) {
	for i, r := range reads {
		value := fmt.Sprintf("x[%d]", i)
		if resets && r.Kind == cell.Prev {
			value = fmt.Sprintf("x[%d] != 0 ? %s : 0", len(reads), value)
		}
		p("    const float %v = %s;", r, value)
	}
}

// resetsWord is the end of a kernel's name if there are resets.
func resetsWord(s *schedule.Sequence) string {
	if s.Keep.Empty() {
		return ""
	}
	return "_resets"
}
