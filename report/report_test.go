package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"rnnbench/record"
)

// grid makes up records of every combination of sizes, batches, techniques and cells. One in nine has
// no result.
func grid(cells, hidden, batch, steps int) []record.Record {
	var recs []record.Record
	for c := range cells {
		for h := range hidden {
			for b := range batch {
				for s := range steps {
					for k, name := range []string{"naive", "cudnnstyle", "persistent"} {
						p := record.Point{Cell: fmt.Sprintf("cell%d", c), Pass: "forward", Hidden: 64 << h, Input: 64 << h, Batch: 1 << b, Steps: 10 * (s + 1), Layers: 1, Precision: "fp32"}
						flops := int64(p.Hidden) * int64(p.Hidden) * int64(p.Batch) * int64(p.Steps)
						t := 1e-6*float64(p.Steps)/float64(k+1) + float64(flops)/1e11
						lo, hi, peak := 0.99*t, 1.02*t, 4e11
						r := record.Record{
							Schema: record.Schema, Run: "made-up", Seq: len(recs), Time: time.Unix(int64(len(recs)), 0).UTC(), Point: p,
							Impl: record.Impl{Name: name, Label: name, Knobs: map[string]int{}, Streams: 1}, Device: "abacus",
							Mode: record.Mode{Order: "interleaved", Cache: "hot", Timer: "wall", Data: "normal"}, Status: record.OK,
							Work:  record.Work{Model: "products", Flops: flops, Bytes: flops / 10, Memory: 1 << 20},
							Stats: &record.Stats{N: 10, Min: lo, Q1: lo, Median: t, Q3: hi, Max: hi, Mean: t, Lo: &lo, Hi: &hi, Level: 0.95},
							Rate:  &record.Rate{Flops: float64(flops) / t, Peak: &peak},
						}
						if (len(recs)+1)%9 == 0 {
							code, why := record.ReasonResource, fmt.Sprintf("record %d <does> not \"fit\" & never will", len(recs))
							r.Status, r.ReasonCode, r.Reason, r.Stats, r.Rate = record.Skipped, &code, &why, nil, nil
						}
						recs = append(recs, r)
					}
				}
			}
		}
	}
	return recs
}

func set(label string, recs []record.Record) record.Set {
	bandwidth, exit := 5e10, 0
	end := time.Unix(60, 0).UTC()
	return record.Set{Label: label, Records: recs, Manifest: record.Manifest{
		Run: "made-up", Label: label, Argv: []string{"rnnbench", "sweep", "--out", "/secret/place", "--where", "hidden<=99"},
		Started: time.Unix(0, 0).UTC(), Finished: &end, Exit: &exit,
		Devices: []record.Device{{Key: "abacus", Name: "Abacus", Bandwidth: &bandwidth}},
	}}
}

func pageOf(t *testing.T, sets []record.Set, recs []record.Record) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, sets, recs, Options{}); err != nil {
		t.Fatal(err)
	}
	check(t, b.String())
	return b.String()
}

// check checks what holds for every page: it is well-formed and needs no other file.
func check(t *testing.T, text string) {
	t.Helper()
	before, rest, _ := strings.Cut(text, "<script>")
	_, after, ok := strings.Cut(rest, "</script>")
	if !ok {
		t.Fatal("the page has no script")
	}
	d := xml.NewDecoder(strings.NewReader(before + after))
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	var links []string
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "id":
				if ids[a.Value] {
					t.Errorf("the id %s is used twice", a.Value)
				}
				ids[a.Value] = true
			case "href":
				if link, inside := strings.CutPrefix(a.Value, "#"); inside {
					links = append(links, link)
				} else if a.Value != "data:," {
					t.Errorf("a link leaves the page: %s", a.Value)
				}
			case "src", "srcset", "action", "onload", "onclick":
				t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	for _, l := range links {
		if !ids[l] {
			t.Errorf("#%s leads nowhere", l)
		}
	}
	if found := regexp.MustCompile(`https?:|url\(|@import|//[a-z]+\.`).FindString(strings.ReplaceAll(text, "// S", "")); found != "" {
		t.Errorf("the page names something outside: %q", found)
	}
	if strings.Contains(text, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
}

func TestPage(t *testing.T) {
	recs := grid(2, 3, 3, 2)
	text := pageOf(t, []record.Set{set("made up", recs)}, recs)
	lost := 0
	for _, r := range recs {
		if r.Status == record.OK {
			continue
		}
		lost++
		if !strings.Contains(text, fmt.Sprintf("record %d &lt;does&gt; not &#34;fit&#34; &amp; never will", r.Seq)) {
			t.Errorf("record %d is not told", r.Seq)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("No result (%d)", lost), fmt.Sprintf("<summary>%d rows</summary>", len(recs)), "36 points, 108 measurements",
		"Fastest: persistent", "rnnbench sweep --where &#39;hidden&lt;=99&#39;", "cell0 · forward", "cell1 · forward", "Runner-up", "Abacus",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "/secret/") {
		t.Error("the page tells where the run was kept")
	}
	// For each cell there are a winner map with panels, and a speed-up figure for each number of
	// steps. Throughput against each axis has panels, and a figure for each value of the third axis.
	// There is also a roofline.
	if n := strings.Count(text, "<svg "); n != 2*(1+2+2+2+3+1) {
		t.Errorf("%d figures", n)
	}
	if n := strings.Count(text, "<title>"); n < len(recs) {
		t.Errorf("%d values under the pointer", n)
	}
	if again := pageOf(t, []record.Set{set("made up", recs)}, recs); again != text {
		t.Error("the same records give another page")
	}
}

// TestPagesOfLittle makes pages of few records, and none of no records.
func TestPagesOfLittle(t *testing.T) {
	one := grid(1, 1, 1, 1)
	bad := grid(1, 1, 1, 3)[8:]
	for name, recs := range map[string][]record.Record{"one point": one, "one record": one[:1], "no result": bad} {
		t.Run(name, func(t *testing.T) {
			text := pageOf(t, []record.Set{set("<b>", recs), {Label: "bare", Records: recs}}, recs)
			if strings.Contains(text, "<b>") {
				t.Error("a label is taken for HTML")
			}
		})
	}
	half := set("half", one)
	half.Manifest.Exit = nil // a manifest that somebody edited by hand
	if text := pageOf(t, []record.Set{half}, one); !strings.Contains(text, "not recorded (the run may have been killed)") {
		t.Error("a run without an exit code ended")
	}
	if err := Write(io.Discard, []record.Set{{Label: "empty"}}, nil, Options{}); err == nil {
		t.Error("a page of nothing")
	}
}

// TestControlCharacters: control characters become spaces on the page, wherever they come from.
func TestControlCharacters(t *testing.T) {
	const red = "\x1b[31mred\a\u009b1m"
	recs := grid(1, 1, 1, 3)
	for i := range recs {
		recs[i].Impl.Label = red + recs[i].Impl.Name
	}
	one, two := set(red, recs), set("second"+red, recs)
	one.Manifest.Argv = append(one.Manifest.Argv, "--label", red)
	one.Manifest.Devices[0].Name += red
	var b bytes.Buffer
	if err := Write(&b, []record.Set{one, two}, recs, Options{Title: red}); err != nil {
		t.Fatal(err)
	}
	check(t, b.String())
	if i := strings.IndexFunc(b.String(), func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }); i >= 0 {
		t.Errorf("a control character: %q", b.String()[i:min(b.Len(), i+40)])
	}
	for _, want := range []string{"<h1> [31mred  1m</h1>", `scope="col"> [31mred  1m</th>`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestPapers makes the page of this project's recorded experiments.
func TestPapers(t *testing.T) {
	sets, _, err := record.ReadAll([]string{"../record/testdata/runs/appleyard-table1", "../record/testdata/runs/appleyard-fig2"})
	if err != nil {
		t.Fatal(err)
	}
	var recs []record.Record
	for _, s := range sets {
		recs = append(recs, s.Records...)
	}
	text := pageOf(t, sets, recs)
	for _, want := range []string{`id="appleyard-table1"`, `id="appleyard-fig2"`, "Paper, µs/cell", "6 overlapped", "Appleyard et al. 2016, Table 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(text) > 3<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestPageOf5000Points bounds the size of a page of 5,000 points, each with three techniques.
func TestPageOf5000Points(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	recs := grid(10, 7, 18, 4)
	start := time.Now()
	text := pageOf(t, []record.Set{set("large", recs)}, recs)
	t.Logf("%d points, %d records: %v, %.1f MB", len(recs)/3, len(recs), time.Since(start), float64(len(text))/1e6)
	if len(text) > 10e6 {
		t.Errorf("%.1f MB", float64(len(text))/1e6)
	}
	if n := strings.Count(text, "not &#34;fit"); n < len(recs)/9 {
		t.Errorf("%d of %d points without a result are told", n, len(recs)/9)
	}
}
