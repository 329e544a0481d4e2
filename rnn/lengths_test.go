package rnn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
)

// TestLengthsOfFiles reads files, and says in a sentence what is wrong with others.
func TestLengthsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"5\n3\n\n5\n 1 \r\n":       "1+3+2*5",
		"7":                        "7",
		"":                         "f has no lengths: write one length per line",
		"5\n0\n":                   `f, line 2: "0" is not a length`,
		"5 3\n":                    `f, line 1: "5 3" is not a length`,
		"-2\n":                     `f, line 1: "-2" is not a length`,
		"\x00\x01":                 `f, line 1: "\x00\x01" is not a length`,
		"99999999999\n":            "is not a length",
		strings.Repeat("1", 1<<17): "f has a line that is too long",
	} {
		l, err := ReadLengths("f", strings.NewReader(text))
		if err == nil && string(l) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %q %v, want %q", text, l, err, want)
		}
	}
}

// TestCheckLengths: lengths that do not fit, and settings that do not go with lengths, are refused.
func TestCheckLengths(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Pass: Train, Input: 3, Hidden: 4, Layers: 1, Batch: 3, Steps: 5}
	for text, want := range map[string]string{
		"full": "", "1+5+2": "", "3*5": "", "uniform:50%": "", "uniform:99%@0": "",
		"1+5":           "there are 2 lengths, but the batch has 3 sequences",
		"1+6+2":         "the longest sequence has 6 steps, more than the 5 steps of the problem",
		"1+4+2":         "set steps to 4",
		"1+0+5":         "each sequence must have at least 1 step",
		"1+x+5":         "write full, uniform:50%, a file's name",
		"0*3+5":         `"0" must be a number of sequences`,
		"uniform:40%":   "must be 50% to 99%",
		"uniform:100%":  "must be 50% to 99%",
		"uniform:half":  "write the mean as uniform:50%",
		"uniform:50":    "write the mean as uniform:50%",
		"uniform:60%@x": "uniform:50%@7",
		"9999999*5":     "more than 1048576 sequences",
	} {
		q := p
		var err error
		if q.Lengths, err = ParseLengths(text); err == nil {
			err = q.Check()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	p.Lengths = "1+2+5"
	history, calls, large := p, p, p
	history.History = 2
	calls.Pass, calls.Calls = Forward, 2
	large.Batch, large.Steps, large.Lengths = 1<<13, 1<<13, "uniform:50%"
	for want, q := range map[string]Problem{"set history to 0": history, "set calls to 0": calls, "at most 16777216 rows": large} {
		if err := q.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", q, err, want)
		}
	}
}

// TestUniformLengths: the mean is as asked for, another seed draws others, and the longest has all steps.
func TestUniformLengths(t *testing.T) {
	for _, mean := range []int{50, 75, 99} {
		var before []int
		for seed := range 3 {
			l, err := ParseLengths(fmt.Sprintf("uniform:%d%%@%d", mean, seed))
			if err != nil {
				t.Fatal(err)
			}
			list, err := l.Each(500, 1000)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, n := range list {
				sum += n
			}
			if got := float64(sum) / 5000; math.Abs(got-float64(mean)) > 3 || list[499] != 1000 || list[0] < 1 || !slices.IsSorted(list) || slices.Equal(list, before) {
				t.Errorf("%v: mean %g%%, from %d to %d", l, got, list[0], list[499])
			}
			before = list
		}
	}
	for _, one := range []Lengths{"uniform:50%", "uniform:99%"} {
		if list, err := one.Each(1, 7); err != nil || !slices.Equal(list, []int{7}) {
			t.Errorf("%v of one sequence: %v %v", one, list, err)
		}
	}
}

// TestBatches: rows that exist are found again, whatever the number of batch sizes, and a flip turns
// each sequence on its own.
func TestBatches(t *testing.T) {
	p := Problem{Batch: 5, Steps: 7, Lengths: "1+2*3+6+7"}
	for sizes, want := range map[int]int{0: 20, 1: 35, 2: 23, 3: 21, 4: 20, 9: 20} {
		b := batchesOf(p, sizes)
		if got := b.Before(7); got != want || sizes > 0 && len(b.Runs(0, 7, 7)) > sizes {
			t.Errorf("%d batch sizes: %d rows, want %d: runs %v", sizes, got, want, b.Runs(0, 7, 7))
		}
		padded := make([]float32, 35)
		for i := range padded {
			padded[i] = float32(1 + i)
		}
		packed := b.pack(padded, 1)
		for i, v := range b.unpack(packed, 1, false) {
			if exists := i/5 < SequenceLengths(p)[i%5]; exists && v != padded[i] || !exists && v != 0 {
				t.Errorf("%d batch sizes: row %d is %g", sizes, i, v)
			}
		}
		flip := b.flip()
		turned := make([]float32, len(packed))
		for i, from := range flip {
			if turned[i] = packed[int(from)]; flip[int(from)] != float32(i) {
				t.Errorf("%d batch sizes: a flip of a flip takes row %d elsewhere", sizes, i)
			}
		}
		if got, want := b.unpack(turned, 1, true), b.unpack(packed, 1, false); !slices.Equal(got, want) {
			t.Errorf("%d batch sizes: flipped %v, want %v", sizes, got, want)
		}
	}
}

// TestRaggedCount counts the steps that exist alone.
func TestRaggedCount(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: 5, Layers: 2, Batch: 3, Steps: 11, Output: 2, Lengths: "1+4+11"}
	if got, want := p.FLOPs(), int64(2*16*(20*(3+5)+20*(5+5)+2*5)); got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	p.Cell = cell.QRNN2 // the second tap has no part in the first step of each
	if got, want := p.FLOPs(), int64(2*((16+13)*(15*3+15*5)+16*2*5)); got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	if got := Resized(p, 22); got.Lengths != "2+8+22" || got.Check() != nil {
		t.Errorf("%v: %v", got, got.Check())
	}
	if got := Resized(p, 2); got.Lengths != "2*1+2" || got.Check() != nil { // 0.18 and 0.7 steps count as one
		t.Errorf("%v: %v", got, got.Check())
	}
}
