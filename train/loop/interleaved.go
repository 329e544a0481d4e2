package loop

import (
	"slices"
	"time"

	"rnnbench/record"
	"rnnbench/train"
)

// interleaved times forward and backward alone, in turns with the training. The last of some blocks of
// iterations is followed by as many passes. Which block it is, is decided ahead: one chosen because
// it took long might have been disturbed by another program. None of this counts as time of the
// training.
type interleaved struct {
	pass   timer
	pairs  []pair        // since the latest record
	before int           // pairs of earlier records
	loaded bool          // the pass has parameters from after the latest record
	warm   bool          // the pass has run before: a GPU captures a graph first
	least  time.Duration // shortest iteration so far
	runs   int           // iterations of a block; 0: undecided until one is made
	done   int           // iterations since the latest pair
	block  time.Duration // time so far of the block that passes follow
}

// A timer is a train.Pass.
type timer interface {
	Load() error
	Run(n int) (time.Duration, error)
	Close() error
}

// A pair is how long an iteration took, and a pass right after it.
type pair struct{ iteration, pass time.Duration }

const (
	blockTime = 10 * time.Millisecond // roughly, for a block's iterations and for its passes
	mostRuns  = 64                    // of a block
	blocks    = 4                     // of iterations, the last of which passes follow
	mostPairs = 15                    // for a record
	mostInAll = 20 * mostPairs        // of a loop: a training with many records has enough of them
)

// newInterleaved returns nil where t's pass cannot be timed.
func newInterleaved(t *train.Trainer) (*interleaved, error) {
	pass, err := train.NewPass(t)
	if pass == nil || err != nil {
		return nil, err
	}
	return &interleaved{pass: pass}, nil
}

func (b *interleaved) close() error {
	if b == nil {
		return nil
	}
	return b.pass.Close()
}

// enough reports whether no more passes are to be timed for this record.
func (b *interleaved) enough() bool {
	return len(b.pairs) == mostPairs || b.before+len(b.pairs) >= mostInAll
}

// atMost is n, or the number of iterations until the end of a block if that is less.
func (b *interleaved) atMost(n int) int {
	switch {
	case b == nil || b.enough():
		return n
	case b.runs == 0:
		return 1
	}
	return min(n, b.runs-b.done%b.runs)
}

// after records the time of n iterations, at most atMost, and times passes if it is their turn.
func (b *interleaved) after(took time.Duration, n int) error {
	if b == nil {
		return nil
	}
	b.least = shorter(b.least, took/time.Duration(n))
	if b.enough() {
		return nil
	}
	if b.runs == 0 {
		b.runs = runsIn(b.least)
	}
	if b.done += n; b.done > (blocks-1)*b.runs {
		b.block += took
	}
	if b.done < blocks*b.runs {
		return nil
	}
	pass, err := b.time(b.runs)
	b.pairs = append(b.pairs, pair{b.block / time.Duration(b.runs), pass})
	b.runs, b.done, b.block = 0, 0, 0
	return err
}

// time returns the mean time of so many passes.
func (b *interleaved) time(runs int) (time.Duration, error) {
	if !b.loaded {
		if err := b.pass.Load(); err != nil {
			return 0, err
		}
		b.loaded = true
	}
	if runs > 1 || !b.warm { // else a short run finds the training's data in caches
		if _, err := b.pass.Run(1); err != nil {
			return 0, err
		}
		b.warm = true
	}
	return b.pass.Run(runs)
}

// record summarises the pairs since the latest record; nil: there are none. reading is an
// iteration's share of the time to read the loss.
func (b *interleaved) record(reading time.Duration) *record.Beside {
	if b == nil || len(b.pairs) == 0 {
		return nil
	}
	var iterations, passes, ratios []float64
	for _, x := range b.pairs {
		iteration := (x.iteration + reading).Seconds()
		iterations, passes, ratios = append(iterations, iteration), append(passes, x.pass.Seconds()), append(ratios, iteration/x.pass.Seconds())
	}
	b.before += len(b.pairs)
	b.pairs, b.loaded = b.pairs[:0], false
	return &record.Beside{
		Pairs: len(ratios), Ratio: median(ratios), Iteration: median(iterations), Pass: median(passes),
		LeastIteration: slices.Min(iterations), LeastPass: slices.Min(passes),
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
