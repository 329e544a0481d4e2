package agenda

import (
	"math"

	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
	"rnnbench/tuner"
)

// calling guesses the seconds to check and time a technique's calls. A run takes run seconds, and
// reference says that the reference has to be computed.
func (x *Estimator) calling(run, rounds float64, problem rnn.Problem, reference bool) float64 {
	m := &x.Measure
	const handover = 20e-6 // writing an input, waking workers, reading an output
	call := run + handover
	t := rounds * call * float64(tuner.CallsPerRound(problem, *m))
	if m.PointTimeout > 0 {
		t = math.Min(t, m.PointTimeout.Seconds()+call)
	}
	t += math.Max(m.Warmup.Seconds(), run)
	if m.Verify {
		t += 2 * call * float64(tuner.CallsChecked(problem)) // the call and the check of its output
		if reference {
			t += math.Min(float64(oracle.ReferenceFLOPs(problem.Sequence(), problem.Batch)), 4e9) / 2e9
		}
	}
	return t
}
