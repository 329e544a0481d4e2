package site

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/experiments"
	"rnnbench/internal/synthetic"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// odd is a label that HTML and file systems would misread.
const odd = `<b onclick="x">&amp; ../..\ "'`

// runs makes up so many runs of a machine, a day after the other, each with the same records.
func runs(key string, n int) (sets []record.Set) {
	for i := range n {
		recs := synthetic.Sweep([]int{256, 512, 2048}, []int{16, 64})
		id := fmt.Sprintf("%s-%d", key, i)
		for k := range recs {
			recs[k].Run, recs[k].Device = id, key
			if k == 3 {
				recs[k].Impl.Label = odd
			}
		}
		began := time.Date(2026, 1, 2+i, 3, 4, 5, 0, time.UTC)
		sets = append(sets, record.Set{Label: odd, Dir: "/secret/place/" + id, Records: recs, Manifest: record.Manifest{
			Run: id, Label: odd, Started: began, Argv: []string{"rnnbench", "sweep", "--out", "/secret/place", "--where", "hidden<=99"},
			Devices: []record.Device{{Key: key, Name: "Machine " + key}},
		}})
	}
	return sets
}

// sample is runs of two machines, and one of an experiment.
func sample() []record.Set {
	sets := append(runs("cuda-abacus", 9), runs("cpu-loom", 1)...)
	sets[0].Manifest.Label = experiments.IDs()[0]
	sets[0].Label = sets[0].Manifest.Label
	for k := range 120 { // more than a page
		r := sets[9].Records[0]
		r.Seq, r.Point.Batch = 1000+k, 1000+k
		sets[9].Records = append(sets[9].Records, r)
	}
	return sets
}

// made writes the site of sets, and returns its folder and files.
func made(t *testing.T, sets []record.Set) (dir string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	if _, err := Write(dir, sets, Options{Idea: func(name string) string { return "the idea of " + name }}); err != nil {
		t.Fatal(err)
	}
	return dir, read(t, dir)
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	anchors = regexp.MustCompile(` id="([^"]*)"`)
	links   = regexp.MustCompile(` (?:href|src)="([^"]*)"`)
)

// checkLinks follows each link of a site.
func checkLinks(t *testing.T, files map[string]string) {
	t.Helper()
	ids := map[string]bool{}
	for name, text := range files {
		for _, m := range anchors.FindAllStringSubmatch(text, -1) {
			at := name + "#" + m[1]
			if ids[at] {
				t.Errorf("%s is there twice", at)
			}
			ids[at] = true
		}
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.HasPrefix(to, "data:") {
				continue
			}
			target := name
			if to != "" {
				target = path.Join(path.Dir(name), to)
			}
			if _, ok := files[target]; !ok || anchor != "" && !ids[target+"#"+anchor] {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
}

var (
	tables   = regexp.MustCompile(`(?s)<table>.*?</table>`)
	headings = regexp.MustCompile(`<th [^>]*>(.*?)</th>`)
	rows     = regexp.MustCompile(`(?s)<tr><td.*?</tr>`)
	cells    = regexp.MustCompile(`(?s)<td([^>]*)>(.*?)</td>`)
	whole    = regexp.MustCompile(`^-?\d+$`)
)

// checkNumbers: each measured number of a table leads to its record, or to where its records are. A cell is
// measured if it is aligned as a number and holds one that is not whole; sizes and counts are whole, and the
// sizes of some axes have words beside them. What a paper printed has no record.
func checkNumbers(t *testing.T, files map[string]string) (numbers int) {
	t.Helper()
	axes := map[string]bool{}
	for _, a := range quantity.Axes() {
		axes[a.Name] = true
	}
	for name, text := range files {
		for _, sheet := range tables.FindAllString(text, -1) {
			columns := headings.FindAllStringSubmatch(sheet, -1)
			for _, row := range rows.FindAllString(sheet, -1) {
				for i, cell := range cells.FindAllStringSubmatch(row, -1) {
					column, number := columns[i][1], strings.Contains(cell[1], "data-v") || strings.Contains(cell[1], `"r`)
					if !number || !strings.ContainsAny(cell[2], "0123456789") || whole.MatchString(cell[2]) || axes[column] || strings.Contains(strings.ToLower(column), "paper") {
						continue
					}
					if numbers++; !strings.HasPrefix(cell[2], `<a href="`) {
						t.Errorf("%s: %s in the column %s leads to no record", name, cell[2], column)
					}
				}
			}
		}
	}
	return numbers
}

// TestSite: all links lead somewhere, each number has its record, odd labels are escaped, and no path of the
// machine is told.
func TestSite(t *testing.T) {
	_, files := made(t, sample())
	checkLinks(t, files)
	if n := checkNumbers(t, files); n < 1000 {
		t.Errorf("only %d measured numbers", n)
	}
	for _, name := range []string{"machine/cuda-abacus.html", "experiment/" + experiments.IDs()[0] + ".html", "layer/lstm-forward-h512-b16-t100-l4.html", "technique/persistent.html",
		"layers/lstm-forward-fp32.html", "place/persistent-cuda-abacus-lstm-forward-fp32.html", "run/cuda-abacus-0.html", "run/cpu-loom-0-2.html"} {
		if files[name] == "" {
			t.Errorf("there is no %s among %v", name, slices.Sorted(maps.Keys(files)))
		}
	}
	for name, text := range files {
		if strings.Contains(text, "secret") {
			t.Errorf("%s names a path of the machine", name)
		}
		if strings.HasSuffix(name, ".html") && strings.Contains(text, "<b onclick") {
			t.Errorf("%s does not escape a label", name)
		}
	}
	for name, wants := range map[string][]string{
		"layer/lstm-forward-h512-b16-t100-l4.html": {"Machine cuda-abacus", "cpu-loom", `href="../run/cuda-abacus-1.html#r`, "<svg", "noisy"},
		"machine/cuda-abacus.html":                 {"<svg", "STEADY", "lstm forward fp32"},
		"technique/persistent.html":                {"the idea of persistent", "too large for the device"},
		"run/cuda-abacus-0.html":                   {`"wall_s":[`, "hidden&lt;=99", "&lt;b onclick"},
		"layers.js":                                {`["lstm forward H=512 B=16 T=100 L=4","layer/lstm-forward-h512-b16-t100-l4.html",2]`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
}

// TestTraining: trainings have tables of their own.
func TestTraining(t *testing.T) {
	sets := runs("cpu-loom", 1)
	for k := range sets[0].Records {
		sets[0].Records[k].Training = &record.Training{Iterations: 10, Loss: 1}
	}
	_, files := made(t, sets)
	checkLinks(t, files)
	if text := files["layer/lstm-forward-h512-b16-t100-l4.html"]; !strings.Contains(text, "iterations") {
		t.Error(text)
	}
}

// TestCopies: a run that is there twice has two pages.
func TestCopies(t *testing.T) {
	_, files := made(t, append(runs("cpu-loom", 2), runs("cpu-loom", 1)...))
	checkLinks(t, files)
	pages := 0
	for name := range files {
		if strings.HasPrefix(name, "run/") {
			pages++
		}
	}
	if pages != 3 {
		t.Errorf("%d pages of runs", pages)
	}
}

// TestSameBytes: the same runs give the same files, in any order.
func TestSameBytes(t *testing.T) {
	_, a := made(t, sample())
	sets := sample()
	slices.Reverse(sets)
	_, b := made(t, sets)
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d files and %d", len(a), len(b))
	}
}

// TestFolder: a site replaces an earlier one, and nothing else.
func TestFolder(t *testing.T) {
	dir, before := made(t, sample())
	if err := os.WriteFile(filepath.Join(dir, "CNAME"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, runs("cpu-loom", 1), Options{}); err != nil {
		t.Fatal(err)
	}
	after := read(t, dir)
	if after["CNAME"] != "mine" || after["machine/cuda-abacus.html"] != "" || len(after) >= len(before) {
		t.Error("the site does not replace the one before")
	}
	delete(after, "CNAME")
	checkLinks(t, after)

	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "index.html"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{other: "holds other files", filepath.Join(other, "index.html"): "cannot"} {
		_, err := Write(place, sample(), Options{})
		for _, err := range []error{err, Fits(place)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
	if got := read(t, other); len(got) != 1 || got["index.html"] != "mine" {
		t.Error(got)
	}
	if err := Fits(filepath.Join(other, "new")); err != nil {
		t.Error(err)
	}
	if _, err := Write(filepath.Join(other, "new"), nil, Options{}); err == nil {
		t.Error("a site without runs")
	}
	if _, err := os.Stat(filepath.Join(other, "new")); err == nil {
		t.Error("a site without runs has a folder")
	}
}

// TestForeignFile: a page does not replace a file that somebody put into the site.
func TestForeignFile(t *testing.T) {
	dir, _ := made(t, runs("cpu-loom", 1))
	if err := os.WriteFile(filepath.Join(dir, "machine", "cuda-abacus.html"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, sample(), Options{}); err == nil || !strings.Contains(err.Error(), "machine/cuda-abacus.html is not of a site") {
		t.Error(err)
	}
}

// TestRecorded: the recorded results make a site whose links are whole and whose figures lead to records. It
// stays small.
func TestRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all recorded results")
	}
	paths, err := record.Below("../../results")
	if err != nil {
		t.Fatal(err)
	}
	var sets []record.Set
	for _, path := range paths {
		list, _, err := record.ReadAll([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, list...)
	}
	_, files := made(t, sets)
	checkLinks(t, files)
	if n := checkNumbers(t, files); n < 100_000 {
		t.Errorf("only %d measured numbers", n)
	}
	bytes, marks := 0, 0
	secret := regexp.MustCompile(`/(home|root|tmp|work)/[\w.-]+`)
	for name, text := range files {
		bytes += len(text)
		marks += strings.Count(text, `"><rect `)
		if found := secret.FindString(text); found != "" {
			t.Errorf("%s names the path %s", name, found)
		}
	}
	if bytes > 120<<20 || marks < 1000 {
		t.Errorf("%d bytes, %d marks that lead to records", bytes, marks)
	}
}

func TestNames(t *testing.T) {
	n := namer{}
	for _, c := range [][2]string{
		{"lstm forward H=512", "a/lstm-forward-h512.html"}, {"LSTM forward h512", `a/lstm-forward-h512-[0-9a-f]{8}.html`}, {"../..", "a/unnamed.html"}, {"", `a/unnamed-[0-9a-f]{8}.html`},
		{strings.Repeat("x", 300), `a/x{100}-[0-9a-f]{8}.html`},
	} {
		if got := n.page("a", c[0]); !regexp.MustCompile("^" + c[1] + "$").MatchString(got) {
			t.Errorf("%.20q has the page %s", c[0], got)
		}
	}
}
