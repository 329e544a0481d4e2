package loop

import (
	"errors"
	"testing"
	"time"
)

// A slowPass takes a fixed time, and counts its loads and runs.
type slowPass struct {
	took  time.Duration
	loads int
	runs  int
}

func (p *slowPass) Load() error  { p.loads++; return nil }
func (p *slowPass) Close() error { return nil }
func (p *slowPass) Run(n int) (time.Duration, error) {
	if p.loads == 0 {
		return 0, errors.New("it has no parameters")
	}
	p.runs += n
	return p.took, nil
}

// TestPairs: some blocks of iterations are followed by as many passes, which take only a part of
// the training's time. A record has the pairs since the previous record.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		iteration, pass time.Duration
		iterations      int // for a record
		pairs, runs     int
		ratio           float64
	}{
		{4 * time.Millisecond, 2 * time.Millisecond, 240, mostPairs, mostPairs * 4, 2}, // blocks of three, after one run that warms caches up
		{30 * time.Millisecond, 20 * time.Millisecond, 20, 5, 5, 1.5},
		{30 * time.Millisecond, 40 * time.Millisecond, 8, 2, 2, 0.75},
		{1 * time.Millisecond, 1 * time.Millisecond, 20, 0, 0, 0},
	} {
		p := &slowPass{took: c.pass}
		b := &interleaved{pass: p}
		for part := range 2 {
			for left := c.iterations; left > 0; {
				n := b.atMost(min(left, 1+part*7)) // one by one, and several at a time
				if err := b.after(time.Duration(n)*c.iteration, n); err != nil {
					t.Fatal(err)
				}
				left -= n
			}
			r := b.record(0)
			switch {
			case r == nil && c.pairs > 0 || r != nil && c.pairs == 0:
				t.Fatalf("%v: record %d: %+v", c, part, r)
			case r == nil:
				continue
			case r.Pairs != c.pairs || r.Ratio != c.ratio || r.Iteration != c.iteration.Seconds() || r.LeastPass != c.pass.Seconds():
				t.Errorf("%v: record %d: %+v", c, part, *r)
			}
			want := c.runs
			if part == 0 && c.runs == c.pairs {
				want++ // the first of all, which is not timed
			}
			if p.loads != part+1 || p.runs != want {
				t.Errorf("%v: record %d: loaded %d times, ran %d times", c, part, p.loads, p.runs)
			}
			p.runs = 0
		}
	}
}

// TestPairsInAll: a training with many records times its pass for the first of them alone.
func TestPairsInAll(t *testing.T) {
	b := &interleaved{pass: &slowPass{took: 20 * time.Millisecond}}
	with := 0
	for range 100 {
		for range 100 {
			if err := b.after(20*time.Millisecond, 1); err != nil {
				t.Fatal(err)
			}
		}
		if r := b.record(0); r != nil {
			with += r.Pairs
		}
	}
	if with != mostInAll {
		t.Errorf("%d pairs in all, want %d", with, mostInAll)
	}
}

// TestPairsDisturbed: one pair that another program disturbs changes neither the ratio nor the
// number of pairs.
func TestPairsDisturbed(t *testing.T) {
	p := &slowPass{took: 20 * time.Millisecond}
	b := &interleaved{pass: p}
	for i := range 100 {
		if p.took = 20 * time.Millisecond; len(b.pairs) == 3 {
			p.took = 10 * time.Second
		}
		took := 30 * time.Millisecond
		if i == 51 { // the last of its blocks
			took = time.Minute
		}
		if err := b.after(took, 1); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.record(0); r == nil || r.Pairs != mostPairs || r.Ratio != 1.5 || r.LeastPass != 0.02 {
		t.Errorf("%+v", r)
	}
	b.pairs = append(b.pairs, pair{30 * time.Millisecond, 20 * time.Millisecond})
	if r := b.record(2 * time.Millisecond); r == nil || r.Ratio < 1.59 || r.Ratio > 1.61 {
		t.Errorf("with reading the loss: %+v", r)
	}
}
