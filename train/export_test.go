package train

import "fmt"

// Loss is the mean loss of the last pass, over the steps that count.
func (p *Pass) Loss() (float64, error) {
	loss := make([]float32, p.plan.Head.Loss.Elements())
	if err := p.program.Read(p.plan.Head.Loss, loss); err != nil {
		return 0, err
	}
	return sum(loss) / float64(max(1, p.trainer.counted)), nil
}

// Parameter reads a parameter in single precision.
func (t *Trainer) Parameter(name string) ([]float32, error) {
	for _, one := range t.plan.Updates.Trained {
		if one.Name == name {
			values := make([]float32, one.Param.Elements())
			return values, t.program.Read(one.Param, values)
		}
	}
	return nil, fmt.Errorf("no parameter is called %s", name)
}
