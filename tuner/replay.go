package tuner

import (
	"context"
	"slices"

	"rnnbench/record"
	"rnnbench/tuner/search"
)

// A Replay is the outcome of a search among the recorded candidates of one point.
type Replay struct {
	Verdict
	Time, All float64 // seconds of the samples drawn, and of all recorded
}

// Regret is how much longer the winner takes than the fastest recorded candidate, as a share of the
// latter's time, by all their samples.
func (r *Replay) Regret() float64 { return Regrets(r.Records)[r.Winner] }

// Regrets is how much longer each record of one point takes than the fastest, as a share of the
// latter's time, by their scores. It is 0 for records without samples.
func Regrets(recs []*record.Record) []float64 {
	list := make([]float64, len(recs))
	for i, r := range recs {
		list[i] = search.Score(search.Samples(r))
	}
	best := 0.0
	for i, s := range list {
		if beaten := recs[i].Stats != nil && recs[i].Stats.Stop == stopOutraced; s > 0 && !beaten && (best == 0 || s < best) {
			best = s
		}
	}
	for i, s := range list {
		if s > 0 {
			list[i] = s/best - 1
		}
	}
	return list
}

// NewReplay searches among records of one point, without a device, and adds the result to prior.
// peak is the recorded device's peak in FLOP/s; 0: unknown.
func NewReplay(ctx context.Context, recs []*record.Record, incumbent record.Impl, peak float64, prior *Prior, o search.Options) (*Replay, error) {
	r := &Replay{Verdict: Verdict{Point: recs[0].Point, Records: recs}}
	o.Incumbent = -1
	was := record.Record{Point: recs[0].Point, Device: recs[0].Device, Impl: incumbent}
	arms := make([]search.Arm, len(recs))
	most := 1 // samples of a record: there can be no more rounds
	for i, rec := range recs {
		most = max(most, len(search.Samples(rec)))
		arms[i] = search.Arm{Bound: Bound(rec.Point, rec.Device, rec.Work.Executed, peak), Memory: rec.Work.Memory, Rank: i}
		arms[i].Expected, arms[i].Doubt = prior.Expect(rec.Point, rec.Impl.Label)
		if rec.Key() == was.Key() {
			o.Incumbent = i
		}
	}
	o.Rounds = min(o.Rounds, most)
	bench := &search.Replay{Records: recs}
	var err error
	r.Result, err = search.Run(ctx, arms, bench, o)
	r.Time, r.All = bench.Time, bench.All()
	if err == nil {
		prior.Add(&r.Verdict)
	}
	return r, err
}

// ByPoint groups records that were rivals: at one point, on one device, measured in the same way.
func ByPoint(recs []record.Record) [][]*record.Record {
	type place struct {
		p                   record.Point
		device, cache, data string
	}
	at := map[place]int{}
	var groups [][]*record.Record
	for i := range recs {
		r := &recs[i]
		k := place{r.Point, r.Device, r.Mode.Cache, r.Mode.Data}
		j, seen := at[k]
		if !seen {
			j = len(groups)
			at[k] = j
			groups = append(groups, nil)
		}
		groups[j] = append(groups[j], r)
	}
	return slices.Clip(groups)
}
