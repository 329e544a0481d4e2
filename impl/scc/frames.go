package scc

import (
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// frames says where the rows of frames lie. A frame has a row for each sequence, or for each that
// has not ended.
type frames struct {
	batch  int
	ragged *rnn.Batches // nil: all sequences have all frames
}

// at returns the number of rows before frame t. Frames before the first have one for each sequence.
func (f frames) at(t int) int {
	if f.ragged == nil || t <= 0 {
		return t * f.batch
	}
	return f.ragged.Before(t)
}

// bands divides frames [t, t+c) into runs whose rows, delay frames earlier, form one band.
func (f frames) bands(delay, t, c int, do func(t, c int)) {
	if f.ragged == nil || delay == 0 {
		do(t, c)
		return
	}
	for _, run := range f.ragged.Bands(delay, t, c) {
		do(run.T, run.N)
	}
}

// rows views frames [t, t+c).
func (f frames) rows(p place, t, c int) schedule.View { return f.before(p, 0, t, c) }

// before views p delay frames before frames [t, t+c), for the sequences that these frames have. The
// frames must be a run of bands.
func (f frames) before(p place, delay, t, c int) schedule.View {
	from, n := f.at(t-delay), f.at(t+c)-f.at(t)
	if f.ragged != nil && delay > 0 { // the sequences that go on are the last rows
		from = f.at(t-delay+1) - (f.at(t+1) - f.at(t))
	}
	return p.m.Band(p.lead*f.batch+from, n).Columns(p.col, p.cols)
}
