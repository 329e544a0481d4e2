package knob

import (
	"reflect"
	"strings"
	"testing"
)

var knobs = []Knob{
	{Name: "fused", Values: []int{1, 0}},
	{Name: "streams", Values: []int{2, 1, 4}, Min: 1, Max: 64},
	{Name: "clocks", Values: []int{0}, Max: 1, Internal: true},
}

func TestComplete(t *testing.T) {
	for _, test := range []struct {
		in   string
		want Params
		err  string
	}{
		{in: "", want: Params{"fused": 1, "streams": 2, "clocks": 0}},
		{in: "fused=0:streams=3", want: Params{"fused": 0, "streams": 3, "clocks": 0}},
		{in: "clocks=1", want: Params{"fused": 1, "streams": 2, "clocks": 1}},
		{in: "fused=2", err: "knob fused cannot be 2: it takes 1, 0"},
		{in: "streams=65", err: "knob streams cannot be 65: it takes 1 to 64"},
		{in: "fussed=1", err: `unknown knob "fussed": the knobs are fused, streams`},
	} {
		p, err := Parse(test.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Complete(knobs)
		switch {
		case test.err != "" && (err == nil || err.Error() != test.err):
			t.Errorf("%q: error %v, want %s", test.in, err, test.err)
		case test.err == "" && (err != nil || !reflect.DeepEqual(got, test.want)):
			t.Errorf("%q: %v, %v, want %v", test.in, got, err, test.want)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	var got []string
	for _, p := range OneAtATime(knobs) {
		got = append(got, p.String())
	}
	if want := " fused=0 streams=1 streams=4"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a=1", "a=1:b=-2", "a", "a=", "=1", "a=1:a=1", "a=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%q: %v becomes %v, %v", s, p, again, err)
		}
	})
}

func TestCombinations(t *testing.T) {
	knobs := []Knob{{Name: "a", Values: []int{0, 1, 2}}, {Name: "b", Values: []int{1, 0}}, {Name: "c", Values: []int{7}}, {Name: "d", Values: []int{0, 4}}}
	for n, want := range []int{1, 1 + 4, 1 + 4 + 5, 12, 12} {
		all := Combinations(knobs, n)
		seen := map[string]bool{}
		for _, p := range all {
			if len(p) > n || seen[p.String()] {
				t.Errorf("at most %d of: %v", n, p)
			}
			if _, err := p.Complete(knobs); err != nil {
				t.Error(err)
			}
			seen[p.String()] = true
		}
		if len(all) != want {
			t.Errorf("at most %d: %d settings, want %d", n, len(all), want)
		}
	}
	if all := Combinations(nil, 3); len(all) != 1 || len(all[0]) != 0 {
		t.Errorf("of no knobs: %v", all)
	}
}
