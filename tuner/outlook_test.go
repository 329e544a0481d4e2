package tuner_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A prophet is a CPU whose cost model predicts what the test says.
type prophet struct {
	device.Device
	expect   func(s *schedule.Schedule, k knob.Params) (float64, error)
	asked    int
	compiled int
}

// prophecyError is the error of a prophet's model. With it, 1.4 times the best time is far behind.
const prophecyError = 0.1

func (p *prophet) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	p.asked++
	seconds, err := p.expect(s, k)
	return device.Prediction{Seconds: seconds, Error: prophecyError}, err
}

func (p *prophet) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p.compiled++
	return p.Device.Compile(s, k)
}

// byOperations predicts a time that grows with the operations of a schedule.
func byOperations(s *schedule.Schedule, _ knob.Params) (float64, error) {
	return math.Pow(float64(len(s.Nodes)), 3), nil
}

func foretold(t *testing.T, expect func(*schedule.Schedule, knob.Params) (float64, error)) (*tuner.Tune, *prophet, map[string]*record.Record) {
	p := &prophet{Device: openWith(t, 2), expect: expect}
	u, kept := tune(t, p.Device)
	u.Device = p
	return u, p, kept
}

// TestPredictionDrops: settings predicted to be far behind are never compiled. The default of each
// technique runs whatever its prediction.
func TestPredictionDrops(t *testing.T) {
	u, p, kept := foretold(t, byOperations)
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Dropped == 0 || len(kept)+v.Dropped != len(v.Records) || v.Candidates() != len(v.Records) || v.WinnerRecord() == nil {
		t.Errorf("%d records and %d dropped of %d candidates", len(kept), v.Dropped, v.Candidates())
	}
	times, best := map[string]float64{}, math.Inf(1)
	for _, r := range kept {
		l, err := tuner.LayOut(p.Device, u.Techniques, small(), grid.Spec{Name: r.Impl.Name, Knobs: r.Impl.Knobs})
		if err != nil {
			t.Fatal(err)
		}
		times[r.Impl.Label], _ = byOperations(l.Schedule, nil)
		best = min(best, times[r.Impl.Label])
	}
	for label, s := range times {
		if s > best*(1+4*prophecyError) && label != "naive" && label != "cudnnstyle" {
			t.Errorf("%s runs and is expected to take %.3g times as long as the fastest", label, s/best)
		}
	}
	for _, name := range []string{"naive", "cudnnstyle"} {
		if times[name] == 0 {
			t.Errorf("the default of %s does not run", name)
		}
	}
	if p.compiled > 2*len(kept) { // checks over fewer steps compile schedules too
		t.Errorf("%d schedules are compiled for %d candidates", p.compiled, len(kept))
	}

	// A second tune measures nothing and drops the same settings.
	again, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), v.WinnerRecord().Impl)
	if err != nil || again.Evaluations != 0 || again.Dropped != v.Dropped || again.Known != v.Timed() {
		t.Errorf("again: %d samples, %d dropped, %d known of %d, %v", again.Evaluations, again.Dropped, again.Known, v.Timed(), err)
	}
}

// TestPredictionOfTheIncumbent: the earlier winner runs too, even if predicted to be far behind.
func TestPredictionOfTheIncumbent(t *testing.T) {
	u, _, kept := foretold(t, byOperations)
	if _, err := u.Tune(t.Context(), small(), specs(t, "cudnnstyle"), record.Impl{}); err != nil {
		t.Fatal(err)
	}
	incumbent := record.Impl{Name: "cudnnstyle", Knobs: knob.Params{"fused": 0}}
	l, err := tuner.LayOut(u.Device, u.Techniques, small(), grid.Spec{Name: incumbent.Name, Knobs: incumbent.Knobs})
	if err != nil {
		t.Fatal(err)
	}
	incumbent.Knobs = l.Settings()
	key := l.Key(u.Device.Info().Key)
	if kept[key] != nil {
		t.Fatal("what is to be the incumbent is not far behind")
	}
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), incumbent)
	if err != nil {
		t.Fatal(err)
	}
	if kept[key] == nil || v.Dropped == 0 {
		t.Errorf("the incumbent did not run, and %d are dropped", v.Dropped)
	}
}

// TestUnknownIsKept: settings without a prediction run.
func TestUnknownIsKept(t *testing.T) {
	u, p, _ := foretold(t, byOperations)
	all := specs(t, "naive", "cudnnstyle")
	some, dropped, _, err := u.Candidates(t.Context(), small(), all)
	if err != nil || dropped == 0 {
		t.Fatalf("%d of %d are dropped, %v", dropped, some, err)
	}
	best := math.Inf(1)
	for _, far := range []float64{0, 1 + 4*prophecyError} {
		p.asked = 0
		p.expect = func(s *schedule.Schedule, k knob.Params) (float64, error) {
			seconds, err := byOperations(s, k)
			if best = min(best, seconds); seconds > far*best {
				return 0, nil
			}
			return seconds, err
		}
		if n, dropped, _, err := u.Candidates(t.Context(), small(), all); err != nil || n != some || dropped != 0 || p.asked < n {
			t.Errorf("the model knows what takes %g times the least: %d of %d candidates are dropped, %d asked about, %v", far, dropped, n, p.asked, err)
		}
	}
}

// TestEveryCandidate: exhaustive and random searches use no predictions.
func TestEveryCandidate(t *testing.T) {
	u, p, _ := foretold(t, byOperations)
	all := specs(t, "naive", "cudnnstyle")
	want, _, _, err := u.Candidates(t.Context(), small(), all)
	if err != nil {
		t.Fatal(err)
	}
	p.asked = 0
	for _, strategy := range []string{"exhaustive", "random"} {
		u.Search.Strategy = strategy
		if n, dropped, _, err := u.Candidates(t.Context(), small(), all); err != nil || n != want || dropped != 0 || p.asked != 0 {
			t.Errorf("%s: %d of %d are dropped after %d predictions, %d with another search; %v", strategy, dropped, n, p.asked, want, err)
		}
	}
}

// TestCandidatesByEffort: of many settings with similar predictions, the effort limits how many run.
// The model predicts only some of the settings of several knobs.
func TestCandidatesByEffort(t *testing.T) {
	level := func(*schedule.Schedule, knob.Params) (float64, error) { return 1, nil }
	for _, c := range []struct {
		effort string
		most   int
	}{{"quick", 60}, {"normal", 160}, {"rigorous", math.MaxInt}} {
		u, p, _ := foretold(t, level)
		u.Settings.Effort, u.Depth = c.effort, 3
		n, dropped, _, err := u.Candidates(t.Context(), small(), specs(t, "cudnnstyle", "persistent"))
		if err != nil {
			t.Fatal(err)
		}
		if n < 300 || n-dropped != min(n, c.most) {
			t.Errorf("%s: %d of %d run", c.effort, n-dropped, n)
		}
		if c.effort == "quick" && p.asked > 3*n/4 || c.effort == "rigorous" && p.asked < n {
			t.Errorf("%s: the model is asked %d times about %d candidates", c.effort, p.asked, n)
		}
	}
}

// TestPredictionFails: an error of the model ends the tune, but a declined candidate does not.
func TestPredictionFails(t *testing.T) {
	broken := errors.New("the model is broken")
	u, _, _ := foretold(t, func(*schedule.Schedule, knob.Params) (float64, error) { return 0, broken })
	_, err := u.Tune(t.Context(), small(), specs(t, "naive"), record.Impl{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "cannot predict the time of naive") {
		t.Errorf("a broken model: %v", err)
	}
	u, _, kept := foretold(t, func(s *schedule.Schedule, k knob.Params) (float64, error) {
		if k["teams"] == 1 {
			return 0, fmt.Errorf("%w: one team is not enough", schedule.ErrUnsupported)
		}
		return 1, nil
	})
	v, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{})
	if err != nil || v.WinnerRecord() == nil {
		t.Fatal(v, err)
	}
	declined := 0
	for _, r := range kept {
		if r.Impl.Knobs["teams"] == 1 {
			declined++
			if r.Status != record.Skipped || *r.ReasonCode != record.ReasonResource || !strings.Contains(*r.Reason, "one team is not enough") {
				t.Errorf("%s: %s", r.Impl.Label, r.Status)
			}
		}
	}
	if declined == 0 {
		t.Error("nothing is declined")
	}

	// A technique whose default is declined runs by another setting.
	u, _, kept = foretold(t, func(s *schedule.Schedule, k knob.Params) (float64, error) {
		if k["teams"] != 1 && s.Streams > 1 {
			return 0, fmt.Errorf("%w: one team is enough", schedule.ErrUnsupported)
		}
		return 1, nil
	})
	if _, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{}); err != nil {
		t.Fatal(err)
	}
	status := map[string]record.Status{}
	for _, r := range kept {
		status[r.Impl.Label] = r.Status
	}
	if status["cudnnstyle"] != record.Skipped || status["cudnnstyle:teams=1"] != record.OK {
		t.Errorf("without its default: %v", status)
	}
}
