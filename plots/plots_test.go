package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/synthetic"
	"rnnbench/plots/internal/golden"
	"rnnbench/record"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	render = flag.String("render", "", "folder to draw every case into, to look at")
)

// A drawing is a figure for tests, with its records.
type drawing struct {
	name string
	recs []record.Record
	draw func([]record.Record) (Figure, error)
}

func with(s Spec) func([]record.Record) (Figure, error) {
	return func(recs []record.Record) (Figure, error) { return Draw(recs, s) }
}

func paper() []Stage {
	speedups := []float64{1, 1.9, 2.8, 5.3, 6.2, 6.5, 11.1}
	stages := make([]Stage, len(speedups))
	for i, s := range synthetic.Stages() {
		stages[i] = Stage{s, speedups[i]}
	}
	return stages
}

// samples are the records that figures are drawn of.
type samples struct {
	small, one, failed, holes, ten, huge, special, vendor, lstms, odd []record.Record
}

// sizes are the units and minibatches of most samples.
func sizes() (hidden, batch []int) { return []int{256, 1024, 4096}, []int{32, 128} }

func newSamples() (d samples) {
	hidden, batch := sizes()
	d.small = synthetic.Sweep(hidden, batch)
	d.one = synthetic.Sweep(hidden, batch[1:])

	d.failed = synthetic.Sweep(hidden, batch)
	for i := range d.failed {
		d.failed[i] = synthetic.Fail(d.failed[i], record.Failed, record.ReasonOOM, "out of memory")
	}
	// Every third record is missing, without a reason.
	d.holes = slices.DeleteFunc(slices.Clone(d.one), func(r record.Record) bool { return r.Seq%3 == 0 })

	m := &synthetic.Machine{}
	for i := range 10 {
		for _, h := range []int{64, 128, 256, 512, 1024} {
			d.ten = append(d.ten, m.Record(synthetic.Point(h, 16, 50), fmt.Sprintf("variant %d", i+1), 1e-6*float64(4+3*i), 0.9-0.05*float64(i)))
		}
	}
	for h := 1; h <= 1<<14; h *= 4 {
		d.huge = append(d.huge, m.Record(synthetic.Point(h, 1, 10), "naive", 3e-5, 0.5))
	}
	for i, l := range []string{`<b>&"quoted"</b>`, "a|b, c=d/e", "two\nlines\tand a tab", "naïve µ × 10³", "a label that is so long that nobody would want it in a legend, and yet it is there and must not be cut off anywhere at all"} {
		for _, h := range []int{256, 512} {
			d.special = append(d.special, m.Record(synthetic.Point(h, 16, 50), l, 1e-5*float64(i+1), 0.5))
		}
	}
	for _, h := range []int{256, 512, 640, 1024, 1152, 1536, 1760, 2048, 2560} {
		d.vendor = append(d.vendor, m.Record(synthetic.Point(h, 64, 100), "cudnnstyle", 1.2e-5, 0.6), m.Record(synthetic.Point(h, 64, 100), "cudnn", 1e-5, 0.85))
	}
	for _, c := range []string{"rnn-tanh", "gru", "lstm"} {
		for _, h := range []int{256, 512, 1024, 2048} {
			for _, l := range []string{"cudnnstyle", "vendor cuDNN"} {
				r := m.Record(synthetic.Point(h, 64, 100), l, 1e-5*float64(1+len(l)/12), 0.6+0.05*float64(len(c)))
				r.Point.Cell = c
				d.lstms = append(d.lstms, r)
			}
		}
	}
	d.odd = oddRecords(d.one)
	return d
}

// oddRecords have values that only a broken tool would record.
func oddRecords(one []record.Record) []record.Record {
	odd := slices.Clone(one)
	for i := range odd {
		bad := []float64{math.NaN(), math.Inf(1), 0, -1, 5e-324}[i%5]
		if odd[i].Stats == nil {
			continue
		}
		s := *odd[i].Stats
		switch i % 4 {
		case 0:
			s.Median = bad
		case 1:
			s.Lo, s.Hi = &bad, &bad
		case 2:
			odd[i].Work.Flops, odd[i].Work.Bytes = 0, 0
		case 3:
			odd[i].Rate = nil
		}
		odd[i].Stats = &s
	}
	return odd
}

func drawings() []drawing {
	d := newSamples()
	return slices.Concat(lineDrawings(d), otherDrawings(d))
}

func lineDrawings(d samples) []drawing {
	hidden, batch := sizes()
	return []drawing{
		{"lines", d.small, with(Spec{Panel: "batch"})},
		{"lines-one-panel", d.one, with(Spec{})},
		{"lines-time", d.small, with(Spec{X: "hidden", Panel: "impl", Y: "time", Series: "batch"})},
		{"lines-latency", synthetic.Calls([]int{256, 1024, 4096}, []int{1}), with(Spec{Y: "latency"})},
		{"lines-split", d.small, with(Spec{X: "hidden"})},
		{"lines-streams", synthetic.Streams(), with(Spec{X: "batch"})},
		{"lines-reference", synthetic.Streams(), func(r []record.Record) (Figure, error) {
			ch, err := Lines(r, Spec{X: "batch", Machine: "synthetic machine; the paper's is another"})
			if err != nil {
				return nil, err
			}
			said := Series{Label: "scc, in the paper", Like: "scc", Reference: true}
			for i, y := range []float64{1.1e11, 2.1e11, 4e11, 7e11, 1.1e12, 1.5e12, 1.8e12, 2e12, 2.1e12} {
				said.Points = append(said.Points, Point{X: math.Exp2(float64(i)), Y: y, Missing: i == 5})
			}
			ch.Panels[0].Series = append(ch.Panels[0].Series, said)
			return ch, nil
		}},
		{"lines-vendor", d.vendor, with(Spec{Peak: 7e12, Scale: "linear"})},
		{"lines-cells", d.lstms, with(Spec{Panel: "cell", Title: "Forward pass, cell by cell", Machine: "made up"})},
		{"lines-one-record", d.one[:1], with(Spec{})},
		{"lines-one-series", d.one[:1:1], with(Spec{X: "batch", Peak: -1})},
		{"lines-all-failed", d.failed, with(Spec{Panel: "batch"})},
		{"lines-holes", d.holes, with(Spec{})},
		{"lines-ten-series", d.ten, with(Spec{Peak: -1})},
		{"lines-huge-range", d.huge, with(Spec{})},
		{"lines-single-x", synthetic.Sweep(hidden[:1], batch[:1]), with(Spec{})},
		{"lines-special", d.special, with(Spec{Title: `<script> & "title"`})},
		{"lines-odd", d.odd, with(Spec{})},
	}
}

func otherDrawings(d samples) []drawing {
	return []drawing{
		{"speedup", d.small, with(Spec{Kind: "speedup", Panel: "batch"})},
		{"speedup-bars", synthetic.Ladder(512, 64), with(Spec{Kind: "speedup", X: "impl", Series: "cell", Baseline: "0 naive"})},
		{"speedup-bars-groups", d.small, with(Spec{Kind: "speedup", X: "impl", Series: "batch", Rows: "hidden"})},
		{"heatmap", d.small, with(Spec{Kind: "heatmap"})},
		{"heatmap-speedup", d.small, with(Spec{Kind: "heatmap", Y: "speedup"})},
		{"heatmap-all-failed", d.failed, with(Spec{Kind: "heatmap"})},
		{"heatmap-holes", d.holes, with(Spec{Kind: "heatmap", Y: "time"})},
		{"heatmap-one-record", d.one[:1], with(Spec{Kind: "heatmap"})},
		{"heatmap-odd", d.odd, with(Spec{Kind: "heatmap", Y: "percent"})},
		{"winner", synthetic.Sweep([]int{256, 512, 1024, 4096}, []int{8, 32, 128, 512}), with(Spec{Kind: "winner"})},
		{"winner-all-failed", d.failed, with(Spec{Kind: "winner"})},
		{"winner-special", d.special, with(Spec{Kind: "winner"})},
		{"winner-one-record", d.one[:1], with(Spec{Kind: "winner"})},
		{"roofline", d.small, with(Spec{Kind: "roofline", Copy: synthetic.Copy})},
		{"roofline-odd", d.odd, with(Spec{Kind: "roofline", Copy: synthetic.Copy})},
		{"ladder", synthetic.Ladder(512, 64), func(r []record.Record) (Figure, error) { return figure(Ladder(r, paper(), Spec{})) }},
		{"ladder-holes", synthetic.Ladder(512, 64)[:4], func(r []record.Record) (Figure, error) {
			r = slices.Clone(r)
			i := slices.IndexFunc(r, func(r record.Record) bool { return r.Impl.Label == "2 streamed" })
			r[i] = synthetic.Fail(r[i], record.Timeout, record.ReasonHang, "no answer for 30 s")
			st := paper()
			st[1].Paper = 0
			return figure(Ladder(r, st, Spec{}))
		}},
	}
}

func svg(t *testing.T, f Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f, "svg"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFigures draws every case, checks what holds for all figures, and compares the figures with
// golden files that were inspected by eye.
func TestFigures(t *testing.T) {
	for _, d := range drawings() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			f, err := d.draw(d.recs)
			if err != nil {
				t.Fatal(err)
			}
			got := svg(t, f)
			for _, bad := range []string{"NaN", "Inf"} {
				if bytes.Contains(got, []byte(bad)) {
					t.Errorf("the figure contains %s", bad)
				}
			}
			if err := wellFormed(got); err != nil {
				t.Errorf("not well-formed: %v", err)
			}
			if !bytes.Contains(got, []byte("<title>")) || !bytes.Contains(got, []byte("sans-serif")) {
				t.Error("no title, or no font to fall back to")
			}
			// Records are in the order of the sweep, which may be random.
			shuffled := slices.Clone(d.recs)
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if g, err := d.draw(shuffled); err != nil {
				t.Error(err)
			} else if again := svg(t, g); !bytes.Equal(got, again) {
				t.Error("the figure depends on the order of the records")
			}
			// Other architectures may round the last digit of a coordinate differently.
			if runtime.GOARCH == "amd64" {
				golden.Check(t, "synthetic-"+d.name+".svg", got, *update)
			}
			if *render != "" {
				if err := Save(filepath.Join(*render, d.name+".png"), f); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func wellFormed(svg []byte) error {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestFormats(t *testing.T) {
	f, err := Draw(synthetic.Sweep([]int{256, 512}, []int{32}), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"a.svg", "a.png", "b.PNG", "a.pdf"} {
		if err := Save(filepath.Join(dir, name), f); err != nil {
			t.Error(err)
		}
	}
	a, err := os.ReadFile(filepath.Join(dir, "a.png"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "b.PNG"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the same figure gave two images")
	}
	if _, err := png.Decode(bytes.NewReader(a)); err != nil {
		t.Error(err)
	}
	if p, err := os.ReadFile(filepath.Join(dir, "a.pdf")); err != nil || !bytes.HasPrefix(p, []byte("%PDF")) {
		t.Errorf("no PDF: %v", err)
	}

	// Characters that a font or an encoding lacks cause no error.
	odd, err := Draw(synthetic.Sweep([]int{256, 512}, []int{32}), Spec{Title: "≥ 漢字 🙂 × µ ± “quoted”"})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats() {
		if err := Write(io.Discard, odd, format); err != nil {
			t.Error(err)
		}
	}

	for _, name := range []string{"a.gif", "noending", "nosuchfolder/a.svg"} {
		if err := Save(filepath.Join(dir, name), f); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 4 {
		t.Errorf("files left behind: %v", left)
	}
}

type broken struct{}

func (broken) frame() *frame { panic("gonum gave up") }

func TestPanicBecomesError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.svg")
	err := Save(path, broken{})
	if err == nil || !strings.Contains(err.Error(), "gonum gave up") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was left")
	}
}

// TestLimits: a figure explains marks above its limits if there are any, and only then.
func TestLimits(t *testing.T) {
	recs := synthetic.Sweep([]int{256, 512}, []int{32})
	most := 0.0
	for i := range recs {
		most = max(most, float64(recs[i].Work.Flops)/recs[i].Seconds())
	}
	for _, c := range []struct {
		spec       Spec
		peak, copy bool
	}{
		{Spec{X: "hidden", Peak: 2 * most}, false, false},
		{Spec{X: "hidden", Peak: most / 2}, true, false},
		{Spec{X: "hidden", Y: "speedup", Peak: 1e-3}, false, false},
		{Spec{Kind: "roofline", Peak: 2 * most, Copy: 1e18}, false, false},
		{Spec{Kind: "roofline", Peak: most / 2, Copy: 1}, true, true},
	} {
		f, err := Draw(recs, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		notes := f.(*Chart).Notes
		if slices.Contains(notes, peakNote) != c.peak || slices.Contains(notes, copyNote) != c.copy {
			t.Errorf("%+v: %q", c.spec, notes)
		}
	}
}

func TestErrors(t *testing.T) {
	small := synthetic.Sweep([]int{256, 512}, []int{32, 64})
	many := []record.Record{}
	m := &synthetic.Machine{}
	for i := range 30 {
		many = append(many, m.Record(synthetic.Point(256, i+1, 10), "naive", 1e-5, 0.5))
	}
	for _, c := range []struct {
		recs []record.Record
		spec Spec
		want string
	}{
		{nil, Spec{}, "no records"},
		{small, Spec{Kind: "pie"}, "unknown kind"},
		{small, Spec{X: "hiden"}, `did you mean "hidden"`},
		{small, Spec{Y: "flop"}, `did you mean "flops"`},
		{small, Spec{X: "til"}, `did you mean "tile"`},
		{small, Spec{X: "hidden", Panel: "hidden"}, "used once"},
		{small, Spec{X: "cell"}, "not numeric"},
		{small, Spec{Scale: "cubic"}, "unknown scale"},
		{small, Spec{Kind: "speedup", Baseline: "nothing"}, "no result to compare with"},
		{small, Spec{Kind: "roofline"}, "copy rate"},
		{small, Spec{Kind: "heatmap", X: "hidden", Rows: "layers"}, "also differ in minibatch"},
		{small, Spec{Kind: "winner", X: "hidden", Rows: "hidden"}, "used"},
		{many, Spec{X: "hidden"}, "too many for a figure"},
		{many, Spec{X: "hidden", Panel: "batch"}, "too many for a figure"},
	} {
		f, err := Draw(c.recs, c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.spec, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "plots: ")) {
			t.Errorf("not one prefixed sentence: %v", err)
		}
		if f != nil {
			t.Errorf("%+v: an error and a figure", c.spec)
		}
	}
}

func TestTicks(t *testing.T) {
	room := func(s string) float64 { return 0.02 * float64(len(s)) }
	for _, c := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{}, []float64{0, 4e12}, "0 1T 2T 3T 4T"},
		{Axis{Scale: Log}, []float64{1e9, 1e12}, "1G 2G 5G 10G 20G 50G 100G 200G 500G 1T"},
		{Axis{Scale: Log}, []float64{1e3, 1e12}, "1k 100k 10M 1G 100G"},
		{Axis{Scale: Log}, []float64{256, 800}, "400 600 800"},
		{Axis{Scale: Log}, []float64{3e9, 8e10}, "5G 10G 20G 50G"},
		{Axis{Scale: Log}, []float64{-1, 0, math.NaN(), math.Inf(1)}, "-1 -800m -600m -400m -200m 0"},
		{Axis{Scale: Log, Places: []float64{256, 512, 1024}}, []float64{256, 1024}, "256 512 1.02k"},
		{Axis{}, nil, "0 200m 400m 600m 800m 1"},
		{Axis{}, []float64{5}, "3 4 5 6 7"},
	} {
		s := c.axis.fit(c.values, 0, 0)
		var got []string
		for _, k := range c.axis.ticks(s, room) {
			if !k.IsMinor() {
				got = append(got, k.Label)
			}
			if p := s.at(k.Value); p < -1e-9 || p > 1+1e-9 {
				t.Errorf("%v: tick %v lies outside", c.values, k)
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%v %v: got %q, want %q", c.axis.Scale, c.values, g, c.want)
		}
	}
}

// TestTenSeriesCanBeToldApart: sixteen series all look different.
func TestTenSeriesCanBeToldApart(t *testing.T) {
	var all []Series
	for _, l := range []string{"naive", "cudnnstyle", "persistent", "scan", "scc", "cudnn"} {
		all = append(all, Series{Label: l})
	}
	for i := range 10 {
		all = append(all, Series{Label: fmt.Sprint("variant ", i)})
	}
	seen := map[string]string{}
	for label, l := range looks(all) {
		k := fmt.Sprintf("%v %v %T", l.color, l.dashes, l.glyph)
		if other, ok := seen[k]; ok {
			t.Errorf("%s looks like %s", label, other)
		}
		seen[k] = label
	}
}

// TestLargeFamily: many series of one family all look different.
func TestLargeFamily(t *testing.T) {
	all := []Series{{Label: "T=512, scan", Like: "T=512"}, {Label: "T=512, naive", Like: "T=512"}}
	for i := range 10 {
		all = append(all, Series{Label: fmt.Sprint("T=256, form ", i), Like: "T=256"})
	}
	seen := map[string]string{}
	for label, l := range looks(all) {
		k := fmt.Sprintf("%v %v", l.color, l.dashes)
		if other, ok := seen[k]; ok {
			t.Errorf("%s looks like %s", label, other)
		}
		seen[k] = label
	}
}

// TestVendorIsDashed: no setting of a vendor's library has a solid line.
func TestVendorIsDashed(t *testing.T) {
	all := []Series{{Label: "naive"}}
	for i := range 9 {
		all = append(all, Series{Label: fmt.Sprint("cudnn:algorithm=", i), Like: "cudnn"})
	}
	for label, l := range looks(all) {
		if dashed := l.dashes != nil; dashed != (label != "naive") {
			t.Errorf("%s: dashes %v", label, l.dashes)
		}
	}
}

// TestTextWidths: every text of an SVG declares the width with which it was laid out.
func TestTextWidths(t *testing.T) {
	ch, err := Lines(synthetic.Ladder(512, 64), Spec{X: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, ch, "svg"); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	if texts, widths := strings.Count(svg, "<text "), strings.Count(svg, "<text textLength="); texts == 0 || texts != widths {
		t.Errorf("%d texts, %d with widths", texts, widths)
	}
}
