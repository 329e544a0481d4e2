package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// NormLayer is the Problem.Norm of layers that normalise their products and cell states.
const NormLayer = "layer"

// checkNorm reports a norm that there is not.
func checkNorm(p Problem) error {
	if p.Norm != "" && p.Norm != NormLayer {
		return fmt.Errorf("rnn: there is no norm %q: set norm to none or %s", p.Norm, NormLayer)
	}
	return nil
}

// declineNorm says why t cannot normalise the layers of p.
func declineNorm(t Technique, p Problem) error {
	if p.Norm == "" {
		return nil
	}
	return fmt.Errorf("%w: it has no sums over all units of a layer within a step, which norm=%s needs: set norm to none", schedule.ErrNorm, p.Norm)
}
