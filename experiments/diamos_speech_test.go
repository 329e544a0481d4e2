package experiments_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// speech returns diamos-speech.
func speech(t *testing.T) study.Experiment {
	t.Helper()
	e, err := experiments.Lookup("diamos-speech")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestSameNetworks: means are of the networks that all techniques ran, in each pass.
func TestSameNetworks(t *testing.T) {
	recs := planned(t, "diamos-speech", gpu)
	trained := func(r record.Record) bool { return r.Point.Norm != "" && r.Point.Pass == "train" }
	networks := map[record.Point]bool{}
	for _, r := range recs {
		if trained(r) {
			networks[r.Point] = true
		}
	}
	i := slices.IndexFunc(recs, func(r record.Record) bool { return trained(r) && r.Impl.Name == "persistent" })
	recs = slices.Delete(recs, i, i+1)
	rep := report(t, "diamos-speech", recs, gpu)
	if s := about(rep, "persistent, graph trains the networks"); len(networks) < 6 || !strings.Contains(s, fmt.Sprintf("as fast as cudnnstyle, graph (geometric mean over the %d networks that all techniques trained)", len(networks)-1)) {
		t.Errorf("%d networks: %q", len(networks), s)
	}
	if s := about(rep, "persistent, graph runs the networks forward"); !strings.Contains(s, "networks that all techniques ran forward") {
		t.Errorf("%q", s)
	}
	if s := about(rep, "cudnn trains the networks"); !strings.Contains(s, "over the 1 network") && !strings.Contains(about(rep, "cudnn fastest form trains"), "over the 1 network") {
		t.Errorf("cuDNN: %q", s)
	}
}

// TestEarlierStacks: records of recurrent layers alone, as earlier programs measured them, are reported as such
// and keep their size.
func TestEarlierStacks(t *testing.T) {
	e := speech(t)
	for size, reduced := range map[study.Size]bool{study.Full: false, study.Quick: true} {
		recs := recordsOf(e.Earlier(size, gpu))
		one := recs[0].Point
		recs = slices.DeleteFunc(recs, func(r record.Record) bool { return r.Impl.Label == "persistent" && r.Point == one })
		rep, err := e.On(record.Device{Key: "cuda-synthetic", Name: "synthetic"}, recs)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Reduced != reduced || !e.Concerns(record.Device{Key: "cuda-synthetic"}, recs, true) {
			t.Errorf("size %d: reduced %t", size, rep.Reduced)
		}
		if s := about(rep, "persistent trains the stacks"); !strings.Contains(s, "as fast as naive (geometric mean over the 11 stacks that all techniques trained)") {
			t.Errorf("%q", s)
		}
		if about(rep, "The stacks are the recurrent layers alone") == "" || about(rep, "the networks") != "" && strings.Contains(about(rep, "the networks"), "as fast") {
			t.Errorf("%q", rep.Findings)
		}
	}
}

// TestSpeechParameters: the program counts the parameters of the whole networks, and they are those that the paper
// prints, whatever was measured.
func TestSpeechParameters(t *testing.T) {
	rep := report(t, "diamos-speech", nil, gpu)
	for _, words := range []string{"networks of 22, 65", "the number of parameters is kept"} {
		if got := outcomes(rep, words); !slices.Equal(got, []study.Outcome{study.ComputedAgrees}) {
			t.Errorf("%s: %v", words, got)
		}
	}
}

// TestNarrowNetworks: the deepest network of Table 2 answers what the paper says of narrow layers.
func TestNarrowNetworks(t *testing.T) {
	const words = "persistent kernels are much more efficient"
	recs := recordsOf(speech(t).Parts(study.Full, gpu))
	for times, want := range map[float64]study.Outcome{1: study.Differs, 3: study.Agrees} {
		if got := outcomes(report(t, "diamos-speech", faster(recs, "persistent, graph", times), gpu), words); !slices.Equal(got, []study.Outcome{want}) {
			t.Errorf("%v times: %v, want %s", times, got, want)
		}
	}
}

// TestStepsChecked: the report says whether all techniques were checked over the same steps, at how many steps states
// were checked, and over how many gradients.
func TestStepsChecked(t *testing.T) {
	recs := recordsOf(speech(t).Parts(study.Quick, cpu))
	for i := range recs {
		recs[i].Verify = &record.Verify{OK: true, Method: record.VerifyShorter, Steps: 3}
	}
	rep := report(t, "diamos-speech", recs, cpu)
	if about(rep, "all techniques were checked over the same steps: 3.") == "" || !strings.Contains(about(rep, "states were checked"), "none by cudnnstyle; none by persistent") {
		t.Errorf("%q", rep.Findings)
	}
	recs[0].Verify = &record.Verify{OK: true, Method: record.VerifyWhole, Steps: 20}
	if rep = report(t, "diamos-speech", recs, cpu); about(rep, "and over different ones at 1.") == "" {
		t.Errorf("%q", rep.Findings)
	}
	recs[0].Verify.Shorter = 3 // as the others
	if rep = report(t, "diamos-speech", recs, cpu); about(rep, "over the same steps: 3.") == "" || about(rep, "over the fewer steps too") == "" {
		t.Errorf("%q", rep.Findings)
	}
	for i := range recs {
		recs[i].Verify = &record.Verify{OK: true, Method: record.VerifyWhole, Steps: recs[i].Point.Steps}
	}
	if rep = report(t, "diamos-speech", recs, cpu); about(rep, "The states of every technique were checked at every step") == "" {
		t.Errorf("%q", rep.Findings)
	}
}

// TestWholeNetworksAndCuDNN: what the report says of cuDNN is so. It declines networks with batch normalisation,
// and runs those without.
func TestWholeNetworksAndCuDNN(t *testing.T) {
	library, with, without := impl.Lookup("cudnn"), 0, 0
	for _, part := range speech(t).Parts(study.Quick, gpu) {
		for _, p := range part.Points {
			problem, err := tuner.Problem(p)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = rnn.Layout(library, problem, nil)
			if p.Norm != "" {
				with++
				if !errors.Is(err, schedule.ErrNorm) {
					t.Errorf("%v: %v", p, err)
				}
			} else if without++; err != nil {
				t.Errorf("%v: %v", p, err)
			}
		}
	}
	if with == 0 || without == 0 {
		t.Errorf("%d networks with batch normalisation, %d without", with, without)
	}
}
