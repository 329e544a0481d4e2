package axis

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSequenceLengths: records have the word, early ones do not, and both are the same point.
func TestSequenceLengths(t *testing.T) {
	var old, full, half Point
	for text, p := range map[string]*Point{`{"layers": 3}`: &old, `{"layers": 3, "lengths": "full"}`: &full, `{"layers": 3, "lengths": "uniform:50%@7"}`: &half} {
		if err := json.Unmarshal([]byte(text), p); err != nil {
			t.Fatal(err)
		}
	}
	if old != full || old == half {
		t.Errorf("%v, %v and %v", old, full, half)
	}
	for p, word := range map[*Point]string{&old: "full", &half: "uniform:50%@7"} {
		text, err := json.Marshal(p)
		if err != nil || !strings.Contains(string(text), `"lengths":"`+word+`"`) || word != "full" && !strings.Contains(p.String(), "lengths="+word) {
			t.Errorf("%s %v: %v", text, p, err)
		}
	}
	for _, bad := range []string{"", "Half", "3, 4"} {
		if err := json.Unmarshal([]byte(`{"lengths": "`+bad+`"}`), new(Point)); err == nil || !strings.Contains(err.Error(), "write full") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for l, want := range map[SequenceLengths]float64{"": 100, "uniform:60%@3": 60, "2*3+9+9": 60, "10": 100, "x": -1} {
		if got, ok := l.Mean(10); ok && got != want || ok != (want > 0) {
			t.Errorf("%v: mean %g %v, want %g", l, got, ok, want)
		}
	}
	for l, want := range map[SequenceLengths]float64{"": 20, "9+10": 19, "2*10": 20, "10": -1, "uniform:": -1, "uniform:50%": 11, "uniform:75%@2": 15} {
		if got, ok := l.Steps(2, 10); ok && got != want || ok != (want > 0) {
			t.Errorf("%v: %g steps %v, want %g", l, got, ok, want)
		}
	}
	if short := SequenceLengths("1+22+333+4444" + strings.Repeat("+55555", 9)).Short(); short != "1+22+333+4444+55555+55555+55555+55555+… (5 more)" {
		t.Errorf("cut: %s", short)
	}
}
