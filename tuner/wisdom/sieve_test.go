package wisdom

import (
	"testing"
	"time"
)

func TestSieve(t *testing.T) {
	book := func() *Book {
		return &Book{Entries: []Entry{
			{Device: "cpu-x", Tool: "1", Complete: true, Time: time.Now()},
			{Device: "cpu-y", Tool: "2", Complete: true, Time: time.Now().Add(-time.Hour)},
			{Device: "cpu-y", Tool: "2", Time: time.Now()},
		}}
	}
	for _, c := range []struct {
		v    Sieve
		want int // entries that are removed
	}{
		{Sieve{}, 0}, {Sieve{Device: "cpu-y"}, 2}, {Sieve{Older: time.Minute}, 1}, {Sieve{Stale: true}, 1}, {Sieve{Incomplete: true}, 1},
		{Sieve{Stale: true, Incomplete: true}, 2}, {Sieve{Device: "cpu-z"}, 0},
	} {
		b := book()
		if removed := c.v.Sift(b, "2", nil); len(removed) != c.want || len(b.Entries) != 3-c.want {
			t.Errorf("%+v: %d go and %d stay", c.v, len(removed), len(b.Entries))
		}
	}
}
