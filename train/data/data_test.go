package data_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/train/data"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// book is a text of two sentences, again and again, with other numbers.
func book(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "book.txt")
	text := ""
	for i := range 60 {
		text += fmt.Sprintf("The cat sat on mat %d. Größe: %d cm, said the cat!\n", i, i*i)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A minibatch is what Next fills.
type minibatch struct{ x, target []float32 }

func next(s data.Source, o data.Options) minibatch {
	m := minibatch{make([]float32, o.Batch*o.Steps*s.Shape().Given()), make([]float32, o.Batch*o.Steps)}
	for i := range m.x { // values that are not written stay NaN
		m.x[i] = float32(math.NaN())
	}
	for i := range m.target {
		m.target[i] = float32(math.NaN())
	}
	s.Next(m.x, m.target)
	return m
}

func (m minibatch) equal(o minibatch) bool {
	return slices.Equal(m.x, o.x) && slices.Equal(m.target, o.target)
}

func open(t *testing.T, spec string, o data.Options) data.Source {
	t.Helper()
	s, err := data.Open(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// specs are one of each task.
func specs(t *testing.T) []string {
	return []string{
		"copy:delay=3:length=2:symbols=4", "adding", "text:" + book(t), "words:vocabulary=30:file=" + book(t),
		"events:recordings=9:burnin=3", "n-mnist:burnin=3:dir=" + nmnist(t, 3),
	}
}

// TestSources: every symbol and class is in range. Equal seeds give equal minibatches, and other
// seeds others. A source continues from its position. Held-out data differ from those to train on.
func TestSources(t *testing.T) {
	o := data.Options{Batch: 3, Steps: 11, Seed: 5}
	for _, spec := range specs(t) {
		s, same := open(t, spec, o), open(t, spec, o)
		shape := s.Shape()
		var states [][]byte
		var all []minibatch
		for range 40 {
			states = append(states, s.State())
			m := next(s, o)
			all = append(all, m)
			if !m.equal(next(same, o)) {
				t.Fatalf("%s: the same seed gives other data", spec)
			}
			for _, v := range m.target {
				if !(v >= 0 || shape.Weighted && v == -1) || v >= float32(shape.Output) || v != float32(int(v)) {
					t.Fatalf("%s: class %v of %d", spec, v, shape.Output)
				}
			}
			for i, v := range m.x {
				symbol, symbols := shape.OneHot, shape.Input
				if shape.Symbols > 0 {
					if symbol, symbols = i%shape.Given() == 0, shape.Symbols; !symbol && v >= -1 {
						continue
					}
				}
				if !(v >= 0) || symbol && (v >= float32(symbols) || v != float32(int(v))) {
					t.Fatalf("%s: input %v of %d", spec, v, symbols)
				}
			}
		}
		for _, i := range []int{39, 0, 17} {
			if err := s.Restore(states[i]); err != nil || !next(s, o).equal(all[i]) {
				t.Errorf("%s: from position %d on the data are others: %v", spec, i, err)
			}
		}
		held := o
		held.Held = true
		if h := open(t, spec, held); h.Shape() != shape || slices.ContainsFunc(all, next(h, o).equal) {
			t.Errorf("%s: held-out data are those to train on, or have another shape", spec)
		}
		if err := s.Restore([]byte{1}); err == nil {
			t.Errorf("%s: a position of one byte is accepted", spec)
		}
	}
}

// TestFirstMinibatch compares the data with golden ones: other data would be another task.
func TestFirstMinibatch(t *testing.T) {
	o := data.Options{Batch: 2, Steps: 8, Seed: 1}
	var got bytes.Buffer
	for _, spec := range specs(t) {
		m := next(open(t, spec, o), o)
		name, _, _ := strings.Cut(spec, ":")
		fmt.Fprintf(&got, "%s\nx %v\ntarget %v\n", name, m.x, m.target)
	}
	path := filepath.Join("testdata", "first.golden")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the first minibatches are not those of %s:\n%s", path, got.Bytes())
	}
}

// TestSizeOne: a batch of one sequence, and one step where the task allows it, are enough.
func TestSizeOne(t *testing.T) {
	for _, spec := range specs(t) {
		o := data.Options{Batch: 1, Steps: 1}
		s, err := data.Open(spec, o)
		if err != nil {
			if !strings.Contains(err.Error(), "set steps to") {
				t.Errorf("%s: %v", spec, err)
			}
			continue
		}
		if m := next(s, o); m.x[0] != m.x[0] || m.target[0] != m.target[0] {
			t.Errorf("%s: something is not filled: %v", spec, m)
		}
	}
}

// TestOtherSeeds: another seed gives another minibatch, unless the text gives the order.
func TestOtherSeeds(t *testing.T) {
	for _, spec := range specs(t) {
		o := data.Options{Batch: 2, Steps: 9, Seed: 1}
		other := o
		other.Seed = 2
		same := next(open(t, spec, o), o).equal(next(open(t, spec, other), other))
		if text := strings.HasPrefix(spec, "text") || strings.HasPrefix(spec, "words"); same != text {
			t.Errorf("%s: seeds 1 and 2 give equal data: %v", spec, same)
		}
	}
}

// TestNames: each task has a line, with its options as they are spelled.
func TestNames(t *testing.T) {
	lines := data.Names()
	for i, name := range []string{"copy:delay=", "adding:classes=", "text:", "words:", "events:ahead=50:", "n-mnist:"} {
		if !strings.HasPrefix(lines[i], name) {
			t.Errorf("line %d is %q, which is not of %s", i, lines[i], name)
		}
	}
}

// TestCopy: the symbols are asked for after the mark, in their order.
func TestCopy(t *testing.T) {
	o := data.Options{Batch: 2, Steps: 9, Seed: 3}
	m := next(open(t, "copy:delay=3:length=2:symbols=4", o), o)
	for b := range o.Batch {
		at := func(v []float32, step int) float32 { return v[step*o.Batch+b] }
		for step := range o.Steps {
			x, target := at(m.x, step), at(m.target, step)
			if seen := step == 2 || step == 3; seen != (x < 4) || (step == 6) != (x == 5) || (step >= 7) != (target < 4) {
				t.Errorf("step %d of sequence %d is %v and asks for %v", step, b, x, target)
			}
		}
		if at(m.x, 2) != at(m.target, 7) || at(m.x, 3) != at(m.target, 8) {
			t.Errorf("sequence %d asks for other symbols than it shows: %v, %v", b, m.x, m.target)
		}
	}
}

// TestAdding: two values are marked, and the class is that of their sum.
func TestAdding(t *testing.T) {
	o := data.Options{Batch: 5, Steps: 10, Seed: 3}
	m := next(open(t, "adding:classes=8", o), o)
	for b := range o.Batch {
		var sum float64
		marks := 0
		for step := range o.Steps {
			if i := 2 * (step*o.Batch + b); m.x[i+1] == 1 {
				sum, marks = sum+float64(m.x[i]), marks+1
			}
		}
		if class := m.target[(o.Steps-1)*o.Batch+b]; marks != 2 || class != float32(int(sum*4)) {
			t.Errorf("sequence %d: %d marks, a sum of %g and class %v", b, marks, sum, class)
		}
	}
}

// TestOpenRefuses: invalid specs are refused in a sentence that says what to do.
func TestOpenRefuses(t *testing.T) {
	path := book(t)
	same := filepath.Join(t.TempDir(), "same")
	if err := os.WriteFile(same, []byte(strings.Repeat("a", 500)), 0o666); err != nil {
		t.Fatal(err)
	}
	o := data.Options{Batch: 2, Steps: 20}
	for spec, want := range map[string]string{
		"": "no task", "coyp": "choose one of copy, adding", "copy:delay": "no option", "copy:delay=x": "whole number",
		"copy:delay=30": "set steps to 50", "copy:symbols=1": "whole number", "adding:classes=1": "whole number", "words:vocabulary=0:file=" + path: "whole number",
		"text:" + path + "x": "no such file", "text:file=" + same: "different symbols", "text:a:file=b": "twice",
		"copy:delay=2:delay=2": "twice", "copy:delay=0": "whole number", "events:recordings=0": "whole number",
		"events:threshold=65": "whole number", "events:dir": "no option", "n-mnist": "n-mnist:DIR",
		"events": "set steps to 31", "events:dimension=0": "whole number",
	} {
		if _, err := data.Open(spec, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
	for _, o := range []data.Options{{Batch: 500, Steps: 20}, {Batch: 2, Steps: 5000}, {Batch: 0, Steps: 5}, {Batch: 1 << 20, Steps: 1 << 20}} {
		if _, err := data.Open("text:file="+path, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := data.Open("adding", data.Options{Batch: 1, Steps: 1}); err == nil {
		t.Error("one value is to be added")
	}
}

// FuzzOpen: for any spec, the answer is an error or a source whose minibatches are in range.
func FuzzOpen(f *testing.F) {
	f.Add("copy:delay=2:length=1:symbols=3", 2, 9)
	f.Add("adding:classes=3", 1, 2)
	f.Add("words:vocabulary=:file=:", 1, 1)
	f.Add("events:ahead=3:burnin=1:recordings=1:threshold=64", 1, 1)
	f.Fuzz(func(t *testing.T, spec string, batch, steps int) {
		for _, name := range []string{"text", "words", "n-mnist"} {
			if strings.HasPrefix(spec, name) {
				spec = name + ":file=/nowhere/" + spec // no file of the machine is read
			}
		}
		o := data.Options{Batch: batch % 8, Steps: steps % 64}
		s, err := data.Open(spec, o)
		if err != nil {
			return
		}
		for _, v := range next(s, o).target {
			if !(v >= 0) || v >= float32(s.Shape().Output) {
				t.Fatalf("%q: class %v of %d", spec, v, s.Shape().Output)
			}
		}
	})
}
