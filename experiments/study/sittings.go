package study

import (
	"fmt"
	"slices"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Sittings tells when records were measured.
type Sittings struct {
	N     int           // begun anew, such as when a run is resumed
	Whole time.Duration // from the first record to the last
}

// pause is the least time between records, beyond what measuring took, that begins a sitting anew.
const pause = 10 * time.Minute

// sittingsOf finds the sittings of recs. A sitting ends where no record accounts for a time longer
// than pause.
func sittingsOf(recs []record.Record) Sittings {
	recs = slices.Clone(recs)
	slices.SortStableFunc(recs, func(a, b record.Record) int { return a.Time.Compare(b.Time) })
	s := Sittings{N: min(1, len(recs))}
	for i := 1; i < len(recs); i++ {
		gap := recs[i].Time.Sub(recs[i-1].Time)
		if gap <= pause {
			continue
		}
		var took float64 // s, of records that were written together after the gap
		for _, r := range recs[i:] {
			if r.Time.Sub(recs[i].Time) > time.Second {
				break
			}
			took += r.Cost.Setup + r.Cost.Verify + r.Cost.Warmup + r.Cost.Measure
			if r.Training != nil {
				took += r.Training.Wall
			}
		}
		if gap.Seconds()-took > pause.Seconds() {
			s.N++
		}
	}
	if len(recs) > 0 {
		s.Whole = recs[len(recs)-1].Time.Sub(recs[0].Time)
	}
	return s
}

// String is such as "in one run" or "in 3 sittings within 4 hours".
func (s Sittings) String() string {
	if s.N < 2 {
		return "in one run"
	}
	return fmt.Sprintf("in %s within %s", quantity.Plural(s.N, "sitting"), quantity.Plural(max(1, int(s.Whole.Round(time.Hour).Hours())), "hour"))
}
