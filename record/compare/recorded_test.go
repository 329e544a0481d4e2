package compare

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"rnnbench/record"
)

var (
	recordFrom = flag.String("record", "", "keep the medians of the runs in this folder of scripts/compare-null as testdata")
	recordAs   = flag.String("as", "", "name of what -record keeps")
)

// A recording holds what scripts/compare-null measured: medians in seconds of runs of one program that
// is compared with itself.
type recording struct {
	Points      []recorded
	Comparisons []struct{ Base, New [][]float64 } // by run and point; 0: no result
}

type recorded struct {
	Impl  string
	Point record.Point
}

func recordingFile(name string) string { return filepath.Join("testdata", "null-"+name+".json.gz") }

// TestRecord writes a recording if -record is given.
func TestRecord(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("without -record DIR -as NAME there is nothing to keep")
	}
	var rec recording
	at := map[recorded]int{}
	folders, err := filepath.Glob(filepath.Join(*recordFrom, "ab-*"))
	if err != nil {
		t.Fatal(err)
	}
	side := func(dir string) (runs [][]float64) {
		paths, err := filepath.Glob(filepath.Join(dir, "2*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			_, recs, _, err := record.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			medians := make([]float64, len(rec.Points))
			for _, r := range recs {
				key := recorded{r.Impl.Label, r.Point}
				i, seen := at[key]
				if !seen {
					i, at[key] = len(rec.Points), len(rec.Points)
					rec.Points, medians = append(rec.Points, key), append(medians, 0)
				}
				medians[i], _ = strconv.ParseFloat(strconv.FormatFloat(r.Seconds(), 'g', 5, 64), 64)
			}
			runs = append(runs, medians)
		}
		return runs
	}
	for _, f := range folders {
		rec.Comparisons = append(rec.Comparisons, struct{ Base, New [][]float64 }{side(filepath.Join(f, "base")), side(filepath.Join(f, "new"))})
	}
	file, err := os.Create(recordingFile(*recordAs))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z := gzip.NewWriter(file)
	if err := json.NewEncoder(z).Encode(rec); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func readRecording(t *testing.T, path string) recording {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := json.NewDecoder(z).Decode(&rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// side makes runs from recorded medians. The medians of the points in slow are multiplied by factor.
func (rec *recording) side(label string, runs [][]float64, factor float64, slow []int) Side {
	s := Side{Label: label}
	for _, medians := range runs {
		set := record.Set{Label: label}
		for i, m := range medians {
			if m == 0 {
				continue
			}
			if slices.Contains(slow, i) {
				m *= factor
			}
			r := record.Record{Point: rec.Points[i].Point, Impl: record.Impl{Name: rec.Points[i].Impl}, Device: "machine",
				Mode: record.Mode{Timer: "wall"}, Status: record.OK, Stats: &record.Stats{N: 1, Median: m}, Samples: &record.Samples{Wall: []float64{m}}}
			set.Records = append(set.Records, r)
		}
		s.Runs = append(s.Runs, set)
	}
	return s
}

// calmed is the recording with a tenth of its noise: each median's deviation from the usual one at its
// point is divided by ten. The noise has the same shape, as on a steadier machine. Two comparisons make
// one of seven runs per side, as many as compare --ab makes.
func (rec *recording) calmed() recording {
	usual := make([]float64, len(rec.Points))
	for i := range usual {
		var all []float64
		for _, c := range rec.Comparisons {
			for _, run := range slices.Concat(c.Base, c.New) {
				all = append(all, run[i])
			}
		}
		usual[i] = median(all)
	}
	calm := func(runs [][]float64) (list [][]float64) {
		for _, run := range runs {
			run = slices.Clone(run)
			for i := range run {
				run[i] = usual[i] * math.Pow(run[i]/usual[i], 0.1)
			}
			list = append(list, run)
		}
		return list
	}
	q := recording{Points: rec.Points}
	for i := 0; i+1 < len(rec.Comparisons); i += 2 {
		c, d := rec.Comparisons[i], rec.Comparisons[i+1]
		c.Base, c.New = calm(slices.Concat(c.Base, d.Base[:2])), calm(slices.Concat(c.New, d.New[:2]))
		q.Comparisons = append(q.Comparisons, c)
	}
	return q
}

// TestRecorded compares recorded runs of one program: at most 10 of 1,000 points are called faster or
// slower. Then it plants 5 % of extra work at some points of each comparison, by scaling the medians of
// one side. Nine of ten are found if runs differ by less than 2 %. The others are ambiguous, with what
// would settle them. The recording machine was never so steady, so a tenth of its noise is tested too.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob(recordingFile("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: there are no recordings", err)
	}
	quiet, found := 0, 0
	for i := range 2 * len(files) {
		path, planted := files[i/2], 4
		rec := readRecording(t, path)
		if i%2 == 1 {
			path, rec, planted = path+", calmed", rec.calmed(), 6
		}
		points, wrong, others, told := 0, 0, 0, 0
		spread := make([]float64, 0, len(rec.Comparisons))
		here, calm := 0, 0
		for i, c := range rec.Comparisons {
			list, err := Runs(rec.side("base", c.Base, 1, nil), []Side{rec.side("new", c.New, 1, nil)}, Usual())
			if err != nil {
				t.Fatal(err)
			}
			points += len(list[0].Changes)
			wrong += list[0].Count(Faster) + list[0].Count(Slower)
			spread = append(spread, list[0].Spread)
			if list[0].Shifted {
				told++
			}
			slow := rand.New(rand.NewPCG(1, uint64(i))).Perm(len(rec.Points))[:planted]
			list, err = Runs(rec.side("base", c.Base, 1, nil), []Side{rec.side("new", c.New, 1.05, slow)}, Usual())
			if err != nil {
				t.Fatal(err)
			}
			for j := range list[0].Changes {
				ch := &list[0].Changes[j]
				if !slices.ContainsFunc(slow, func(i int) bool { return rec.Points[i] == recorded{ch.New.Impl.Name, ch.New.Point} }) {
					continue
				}
				switch {
				case ch.Spread >= 0.02 || list[0].Spread >= 0.02:
					others++
					if ch.Verdict != Slower && (ch.Verdict != Ambiguous || new(Comparison).remedy(ch) == "") {
						t.Errorf("%s, comparison %d: %v is %s (%s)", path, i, ch.New.Point, ch.Verdict, ch.Why)
					}
				case ch.Verdict == Slower:
					here, calm = here+1, calm+1
				default:
					calm++
				}
			}
		}
		slices.Sort(spread)
		t.Logf("%s: %d comparisons, %d of %d points called changed; spread between runs %.1f to %.1f %%, median %.1f %%; common shift told in %d",
			path, len(rec.Comparisons), wrong, points, 100*spread[0], 100*spread[len(spread)-1], 100*spread[len(spread)/2], told)
		t.Logf("%s: 5 %% planted: %d of %d found where runs differ by less than 2 %%, %d points where they differ by more", path, here, calm, others)
		if wrong*100 > points {
			t.Errorf("%s: %d of %d points are called faster or slower", path, wrong, points)
		}
		quiet, found = quiet+calm, found+here
	}
	if quiet < 100 || found*10 < quiet*9 {
		t.Errorf("%d of %d planted changes are found where runs differ by less than 2 %%", found, quiet)
	}
}
