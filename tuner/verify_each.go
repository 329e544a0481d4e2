package tuner

import (
	"slices"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
)

// eachFLOPs is how many times as long as others a check may take that covers each sequence by itself.
const eachFLOPs = 4

// eachBytes is the memory that such a check may take, in bytes, if a quarter of the free memory is more.
const eachBytes = 8 << 30

// eachMayDiffer reports whether copies of a sequence may rightly have different gradients, and memory
// suffices to check each copy by itself: see oracle.Stepwise.CheckEach.
func (v *verification) eachMayDiffer(s *Sweep) bool {
	p := v.problem
	if p.Pass != rnn.Train || !p.Cell.Rectifier() || v.data.Distinct == p.Batch {
		return false
	}
	limit := int64(eachBytes)
	if free := s.memory(); free > 0 {
		limit = min(limit, free/4)
	}
	return (100+stepwiseGarbage)*oracle.StepwiseBytes(p, p.Batch)/100 <= limit
}

// checkEach checks each sequence of c's run by itself, step by step.
func (v *verification) checkEach(c *candidate) (oracle.Deviation, oracle.Covered, error) {
	return oracle.Stepwise{Seed: v.seed, FLOPs: eachFLOPs * referenceFLOPs}.CheckEach(c.Plan, c.prog, v.data)
}

// recheckEach checks a run again that was found wrong though its states are right: step by step, and
// each sequence by itself. If that fails too, the run stays wrong.
func (v *verification) recheckEach(s *Sweep, c *candidate) error {
	if !v.eachMayDiffer(s) || !steps(c.Layout) {
		return nil
	}
	got, err := oracle.Read(c.Plan, c.prog)
	if err != nil {
		return err
	}
	dev, err := oracle.Compare(v.problem, statesOf(got), statesOf(v.answers.of(v.data, true)))
	if err != nil || !dev.OK() {
		return err
	}
	dev, covered, err := v.checkEach(c)
	if err != nil || !dev.OK() {
		return err
	}
	v.note(c, dev, got, record.Verify{Method: record.VerifyStepwise, Steps: covered.Steps, Share: covered.Share, Kinks: counted(covered.Kinks)})
	if covered.Steps < v.problem.Steps {
		c.warn(record.WarnPart)
	}
	return nil
}

// statesOf returns the tensors of an answer that are not gradients.
func statesOf(answer []oracle.Tensor) []oracle.Tensor {
	return slices.DeleteFunc(slices.Clone(answer), func(t oracle.Tensor) bool { return t.Gradient })
}
