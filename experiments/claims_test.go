package experiments_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// TestClaims: every experiment says what the paper found and what was measured of it. A difference
// has a reason, or says that its cause is not known.
func TestClaims(t *testing.T) {
	for _, on := range []study.Target{cpu, gpu} {
		for _, e := range experiments.All() {
			if why, _ := e.Declines(on); why != "" {
				continue
			}
			rep, err := e.Report(synthetic(e, on), on)
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Claims) == 0 {
				t.Errorf("%s claims nothing", e.ID)
			}
			for _, c := range rep.Claims {
				if c.Here == "" || strings.Contains(c.Here, "NaN") || (c.Paper == "") != (c.Outcome == study.Yardstick) {
					t.Errorf("%s: %+v", e.ID, c)
				}
				if s := c.Verdict(); c.Outcome == study.Differs && !strings.Contains(s, "because ") && !strings.Contains(s, "not known") {
					t.Errorf("%s: no reason: %s", e.ID, s)
				}
			}
		}
	}
}

// place is where a paper says what a claim is about.
var place = regexp.MustCompile(`\((blog, section [0-9.]+|ParaRNN, abstract|abstract|(section|Table|Figure|Tables|sections) [0-9.]+((, | and )((section|Table|Figure) )?[0-9.]+)*)\)$`)

// TestClaimsHavePlaces: each claim ends with the page's part that it is from, on a GPU and on a CPU. Each of the four
// papers has claims, of experiments that are theirs, and no yardstick has one.
func TestClaimsHavePlaces(t *testing.T) {
	found := map[string]int{}
	for _, on := range []study.Target{cpu, gpu} {
		for _, e := range experiments.All() {
			if why, _ := e.Declines(on); why != "" {
				continue
			}
			for _, recs := range [][]record.Record{synthetic(e, on), planned(t, e.ID, on)} {
				rep, err := e.Report(recs, on)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range rep.Claims {
					if c.Outcome == study.Yardstick {
						continue
					}
					if !place.MatchString(c.Paper) {
						t.Errorf("%s: %q names no place in the paper", e.ID, c.Paper)
					}
					author, _, _ := strings.Cut(e.Source, " ")
					if found[author]++; author == "rnnbench" || author == "DeepBench" {
						t.Errorf("%s has no paper, and claims %q", e.ID, c.Paper)
					}
				}
			}
		}
	}
	for _, author := range []string{"Appleyard", "Diamos", "Hwang", "Martin", "Danieli"} {
		if found[author] < 2 {
			t.Errorf("%d claims are of %s", found[author], author)
		}
	}
}

// TestNoiseFlipsNoVerdict: of records without an interval, no claim on times agrees or differs.
func TestNoiseFlipsNoVerdict(t *testing.T) {
	judged, open := 0, 0
	for _, on := range []study.Target{cpu, gpu} {
		for _, e := range experiments.All() {
			if why, _ := e.Declines(on); why != "" || e.Parts == nil || e.Apart {
				continue
			}
			recs := recordsOf(e.Parts(study.Full, on))
			for i := range recs {
				if recs[i].Stats != nil {
					s := *recs[i].Stats
					s.Lo, s.Hi = nil, nil
					recs[i].Stats, recs[i].Samples = &s, nil
				}
			}
			rep, err := e.Report(recs, on)
			if err != nil {
				continue // such records give no report
			}
			for _, c := range rep.Claims {
				judged++
				switch {
				case c.Outcome == study.CannotTell:
					open++
				case (c.Outcome == study.Agrees || c.Outcome == study.Differs) && !slices.ContainsFunc(counts, func(s string) bool { return strings.HasPrefix(c.Paper, s) }):
					t.Errorf("%s: %q is settled without an interval: %s, %s", e.ID, c.Paper, c.Here, c.Outcome)
				}
			}
		}
	}
	if judged < 40 || open < 20 {
		t.Errorf("%d claims were judged, and %d cannot be told", judged, open)
	}
}

// TestComputedClaims: what arithmetic answers is not counted among what was measured.
func TestComputedClaims(t *testing.T) {
	for id, words := range map[string]string{"hwang-graph": "the LSTM's loops", "diamos-fig6": "twice the main-memory bandwidth", "diamos-memory": "215 MB", "diamos-speech": "networks of 22"} {
		if got := outcomes(report(t, id, nil, gpu), words); !slices.Equal(got, []study.Outcome{study.ComputedAgrees}) {
			t.Errorf("%s: %v", id, got)
		}
	}
	if s := study.CountClaims([]study.Claim{{Paper: "a", Outcome: study.ComputedOpen}, {Paper: "b", Outcome: study.CannotTell}}); s != "1 cannot be told, 1 cannot be told by computation alone" {
		t.Error(s)
	}
}

// counts are claims on what is counted, not timed: bytes that were allocated, and blocks that gave up.
var counts = []string{"12 times as many parameters", "minibatch 4 in place of 64", "about 9 layers", "over 100 layers", "the global barrier almost never"}

// TestReduced: a report of quick sizes says so in its title and in its figures', and
// neither agrees nor disagrees with the paper.
func TestReduced(t *testing.T) {
	for _, e := range experiments.All() {
		if why, _ := e.Declines(cpu); why != "" {
			continue
		}
		recs := synthetic(e, cpu)
		d := record.Device{Key: "cpu-synthetic-2t", Facts: map[string]string{"rival pytorch": "2.11.0+cu130 graph=0,1", "rival mine": "1", "rival rnnbench-torch": "2.11.0"}}
		rep, err := e.On(d, recs)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Reduced != (len(recs) > 0) {
			t.Errorf("%s: reduced is %t of %d records", e.ID, rep.Reduced, len(recs))
		}
		if !rep.Reduced || e.ID == "diamos-fig6" || e.ID == "diamos-memory" { // whose figures are computed in full
			continue
		}
		if s := e.Heading(rep); !strings.Contains(s, "reduced") {
			t.Errorf("%s: the title is %q", e.ID, s)
		}
		for _, f := range rep.Figures {
			if ch, ok := f.Figure.(*plots.Chart); ok && !strings.Contains(ch.Title, "reduced") {
				t.Errorf("%s: a figure's title is %q", e.ID, ch.Title)
			}
		}
		for _, x := range rep.Tables {
			if strings.Contains(x.Title, ") (") {
				t.Errorf("%s: a table's title has two remarks in brackets: %q", e.ID, x.Title)
			}
		}
		for _, c := range rep.Claims {
			computed := strings.HasPrefix(c.Here, "by the model") || strings.HasPrefix(c.Here, "computed") // of the paper's own sizes
			if !computed && (c.Outcome == study.Agrees || c.Outcome == study.Differs) {
				t.Errorf("%s: %+v", e.ID, c)
			}
		}
		if s := about(rep, "gree"); s != "" {
			t.Errorf("%s: %s", e.ID, s)
		}
	}
}

// TestFull: records of full size are not called reduced.
func TestFull(t *testing.T) {
	e, err := experiments.Lookup("hwang-fig3")
	if err != nil {
		t.Fatal(err)
	}
	var recs []record.Record
	for _, r := range synthetic(e, cpu) {
		r.Point = e.Parts(study.Full, cpu)[0].Points[0]
		recs = append(recs, r)
	}
	rep, err := e.On(record.Device{Key: "cpu-synthetic-2t"}, recs)
	if err != nil || rep.Reduced || !slices.ContainsFunc(rep.Claims, func(c study.Claim) bool { return c.Outcome != study.Reduced }) {
		t.Errorf("reduced is %t, claims %+v, %v", rep.Reduced, rep.Claims, err)
	}
}

// TestSameLength: an LS-LSTM is compared with the fastest LSTM of the same length. The LSTM with a
// grouped product a step comes before the naive one.
func TestSameLength(t *testing.T) {
	all := planned(t, "martin-fig1", gpu)
	for i := range all {
		all[i].Device = "cuda-synthetic"
	}
	rep := report(t, "martin-fig1", all, gpu)
	if s := about(rep, "At the same length"); !strings.Contains(s, "at T=256") || strings.Contains(s, "was not measured") {
		t.Errorf("%q", s)
	}
	old := report(t, "martin-fig1", without(all, "LSTM, persistent, graph"), gpu)
	if s := about(old, "At the same length"); !strings.Contains(s, "was not measured in this run and may be faster: LSTM, persistent, graph.") {
		t.Errorf("without that form: %q", s)
	}
	s := about(rep, "over LSTMs of length 256")
	paper, naive := strings.Index(s, "the paper's counterpart"), strings.Index(s, "naive (eight products")
	if paper < 0 || naive < paper {
		t.Errorf("the paper's counterpart does not come before the naive form: %q", s)
	}
}

// TestAlgorithmsAlike: the vendor's algorithms are called one if they have the same errors and
// times, and not otherwise.
func TestAlgorithmsAlike(t *testing.T) {
	recs := planned(t, "cudnn-bf16", gpu)
	for i := range recs {
		s := *recs[i].Stats
		s.Median = 1e-3
		recs[i].Stats, recs[i].Verify = &s, &record.Verify{Error: 1e-3, OK: true}
	}
	const words = "whichever is requested"
	if about(report(t, "cudnn-bf16", recs, gpu), words) == "" {
		t.Error("algorithms of the same error and time are not called one")
	}
	for i := range recs {
		if recs[i].Impl.Label == "cudnn static" {
			recs[i].Verify = &record.Verify{Error: 2e-3, OK: true}
		}
	}
	if s := about(report(t, "cudnn-bf16", recs, gpu), words); s != "" {
		t.Errorf("algorithms of other errors: %s", s)
	}
}

// TestLibraryLadder: on a GPU, the ladder is also measured with every product by the vendor's
// library. If it was not, the report says so.
func TestLibraryLadder(t *testing.T) {
	all := planned(t, "appleyard-table1", gpu)
	if s := about(report(t, "appleyard-table1", all, gpu), "with every product by cuBLAS"); !strings.Contains(s, "the whole ladder gains ") {
		t.Errorf("%q", s)
	}
	// A GPU declines the settings of the first four stages, which have no kernels but the library's.
	declined := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool {
		return strings.HasSuffix(r.Impl.Label, ", cuBLAS") && r.Impl.Label < "4"
	})
	if s := about(report(t, "appleyard-table1", declined, gpu), "cuBLAS"); !strings.Contains(s, "was not measured") {
		t.Errorf("of stages whose products are unknown: %q", s)
	}
	library := "library"
	for i, r := range declined {
		config := fmt.Sprintf("%d×2048×512 of fp32", r.Work.Flops/(2*2048*512))
		declined[i].Kernels = []record.Kernel{{Name: "product", Variant: &library, Config: &config, Launches: 1}}
	}
	if s := about(report(t, "appleyard-table1", declined, gpu), "with every product by cuBLAS"); !strings.Contains(s, "the whole ladder gains ") {
		t.Errorf("of stages whose products are the library's: %q", s)
	}
	for i := range declined {
		declined[i].Work.Flops *= 2
	}
	if s := about(report(t, "appleyard-table1", declined, gpu), "cuBLAS"); !strings.Contains(s, "was not measured") {
		t.Errorf("of stages whose products are partly the library's: %q", s)
	}
	old := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return strings.Contains(r.Impl.Label, ", cuBLAS") })
	if s := about(report(t, "appleyard-table1", old, gpu), "cuBLAS"); !strings.Contains(s, "was not measured") {
		t.Errorf("%q", s)
	}
}

// TestStartUp: the time of a start is derived from the records.
func TestStartUp(t *testing.T) {
	recs := planned(t, "diamos-fig4", gpu)
	for i, r := range recs {
		s := *r.Stats
		s.Median = 20e-6 + 1e-6*float64(r.Point.Steps)
		recs[i].Stats = &s
	}
	if s := about(report(t, "diamos-fig4", recs, gpu), "start-up"); !strings.Contains(s, "a step takes 1.00 µs and start-up takes 20.0 µs, as much as 20 steps") {
		t.Errorf("%q", s)
	}
}

// TestPaperRates: Figure 1 has the paper's rates, of lengths that were measured and at their minibatches.
func TestPaperRates(t *testing.T) {
	e, err := experiments.Lookup("martin-fig1")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := e.Report(synthetic(e, gpu), gpu)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"paper, T=256": 13.1e3, "paper, T=512": 24.1e3, "paper, T=2048": 57e3}
	for _, p := range rep.Figures[0].Figure.(*plots.Chart).Panels {
		for _, s := range p.Series {
			if s.Label == "the paper's" { // an entry of the legend
				continue
			}
			first := want[s.Label]
			if p.Title == "lstm" {
				first = 740
			}
			if s.Reference && (first == 0 || s.Points[0].X != 1 || s.Points[0].Y != first) {
				t.Errorf("%s, %s: %v", p.Title, s.Label, s.Points)
			}
			if p.Title == "ls-lstm" {
				delete(want, s.Label)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the figure lacks %v", want)
	}
}

// TestMartinLengths: every measured length has a line, unless there are too many to be told apart.
func TestMartinLengths(t *testing.T) {
	rep := report(t, "martin-fig1", planned(t, "martin-fig1", cpu), cpu)
	seen := map[string]bool{}
	for _, p := range rep.Figures[0].Figure.(*plots.Chart).Panels {
		for _, s := range p.Series {
			seen[s.Label] = seen[s.Label] || !s.Reference
		}
	}
	maps.DeleteFunc(seen, func(_ string, measured bool) bool { return !measured })
	if len(seen) != 3 {
		t.Errorf("lines %v, want those of 256, 512 and 2048 steps", seen)
	}
}
