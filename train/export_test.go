package train

// Loss is the mean loss of the last pass, over the steps that count.
func (p *Pass) Loss() (float64, error) {
	loss := make([]float32, p.plan.Head.Loss.Elements())
	if err := p.program.Read(p.plan.Head.Loss, loss); err != nil {
		return 0, err
	}
	return sum(loss) / float64(max(1, p.trainer.counted)), nil
}
