package tuner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/tuner/config"
)

// A Profile is where the time of a run goes. All times are means over the faster half of the runs, in
// seconds.
type Profile struct {
	Workers, Teams int
	Runs           int     // that were profiled
	Run            float64 // of a run
	Plain          float64 // of a run whose operations are not measured
	Groups         []ProfileGroup
}

// A ProfileGroup is a device.ProfileGroup with its measured seconds in a run.
type ProfileGroup struct {
	device.ProfileGroup
	Taken float64 // from the start of each operation to the end of its last share, summed
	Busy  float64 // summed over workers
}

// Bounds of a profile. Runs are taken in turns with those that are not profiled.
const (
	profileTime   = 500 * time.Millisecond
	profileTurns  = 20
	profileMost   = 2000
	profileLeast  = 4       // turns
	profileTimes  = 1 << 22 // runs × groups that are kept
	profileWarmup = 100 * time.Millisecond
)

// ErrNoProfile says that a device cannot measure operations.
var ErrNoProfile = errors.New("the times of operations are measured on CPUs in this process only")

// NewProfile runs l on d, with inputs as a sweep's, and measures where the time of a run goes.
func NewProfile(ctx context.Context, d device.Device, l *Layout, m config.Measure) (*Profile, error) {
	prog, err := l.host(d).Compile(l.Schedule, l.DeviceKnobs)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	profiler, ok := prog.(device.Profiler)
	if !ok {
		return nil, ErrNoProfile
	}
	if err := l.Plan.Write(prog, newVerification(l.Problem, m, &answers{}).input()); err != nil {
		return nil, err
	}
	if err := prog.Prepare(); err != nil {
		return nil, err
	}
	one, err := warmed(ctx, prog)
	if err != nil {
		return nil, err
	}
	each := int(max(1, min(profileMost, float64(profileTime)/2/float64(one))/profileTurns))
	var plain []float64
	var all device.Profile
	for start, k := time.Now(), 0; k < profileLeast || k < profileTurns && time.Since(start) < 2*profileTime; k++ {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		s, err := prog.Run(each)
		if err != nil {
			return nil, err
		}
		plain = append(plain, s.Wall.Seconds()/float64(each))
		found, err := profiler.Profile(each)
		if err != nil {
			return nil, err
		}
		if limit := profileTimes / max(1, len(found.Groups)); each > limit {
			each = max(1, limit)
		}
		found.Runs = append(all.Runs, found.Runs...)
		all = found
	}
	slices.Sort(plain)
	return summarizeProfile(all, meanOf(plain[:(len(plain)+1)/2])), nil
}

// warmed runs prog for a while and returns the time of the shortest run.
func warmed(ctx context.Context, prog device.Program) (time.Duration, error) {
	one := time.Duration(1 << 62)
	for start, n := time.Now(), 1; ; n = min(2*n, 1<<20) {
		s, err := prog.Run(n)
		if err != nil {
			return 0, err
		}
		if one = max(1, min(one, s.Wall/time.Duration(n))); time.Since(start) >= profileWarmup {
			return one, ended(ctx)
		}
	}
}

// summarizeProfile returns the means over the faster half of the runs.
func summarizeProfile(p device.Profile, plain float64) *Profile {
	runs := slices.Clone(p.Runs)
	slices.SortFunc(runs, func(a, b device.ProfileRun) int { return cmp.Compare(a.Wall, b.Wall) })
	runs = runs[:(len(runs)+1)/2]
	out := &Profile{Workers: p.Workers, Teams: p.Teams, Runs: len(p.Runs), Plain: plain}
	for _, g := range p.Groups {
		out.Groups = append(out.Groups, ProfileGroup{ProfileGroup: g})
	}
	for _, r := range runs {
		out.Run += r.Wall.Seconds() / float64(len(runs))
		for g := range out.Groups {
			out.Groups[g].Taken += r.Taken[g].Seconds() / float64(len(runs))
			out.Groups[g].Busy += r.Busy[g].Seconds() / float64(len(runs))
		}
	}
	return out
}

// Operations returns the seconds of all operations. Those of several teams may have run at the same
// time.
func (p *Profile) Operations() (sum float64) {
	for _, g := range p.Groups {
		sum += g.Taken
	}
	return sum
}

// Outside returns the seconds of a run in which the teams, on average, ran no operation: handing
// them out, and waiting for other streams.
func (p *Profile) Outside() float64 { return max(0, p.Run-p.Operations()/float64(p.Teams)) }

// Idle returns the share of the workers' time within a run in which they computed no part of an
// operation.
func (p *Profile) Idle() float64 {
	busy := 0.0
	for _, g := range p.Groups {
		busy += g.Busy
	}
	return max(0, 1-busy/(p.Run*float64(p.Workers)))
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
