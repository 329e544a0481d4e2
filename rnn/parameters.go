package rnn

// Parameters is the number of p's parameters: what training changes, in all layers, before and behind them
// too. First states are none.
func Parameters(p Problem) int64 {
	g, h := len(p.Cell.Gates), p.Hidden
	n := p.Symbols * p.Embedding
	all, _ := Convolutions(p)
	for _, c := range all {
		n += c.Channels * (c.Steps*c.Taps() + 1)
	}
	each := p.Cell.Multiplied()*h*p.HeadUnits() + (g+p.Cell.Recurrent+len(p.Cell.Peeps)+p.Projection)*h
	switch p.Norm {
	case NormBatch:
		each += g * h
	case NormLayer:
		each += (g + p.Cell.Recurrent) * h
	}
	for l := range p.Layers {
		n += p.Ways() * (g*h*p.FanIn(l) + each)
	}
	n += RowConvolutions(p) * p.Lookahead * p.Out()
	if p.Output > 0 {
		n += p.Output * (HeadInput(p) + 1)
		if p.Dense > 0 {
			n += p.Dense * (p.Out() + 1)
		}
	}
	return int64(n)
}
