package oracle

import (
	"math"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestCompareCounts: an answer that lacks a tensor is an error, which says how many tensors it has.
func TestCompareCounts(t *testing.T) {
	p := rnn.Problem{}
	const want = "rnn: an answer has 1 tensors, not 2"
	if _, err := Compare(p, make([]Tensor, 1), make([]Tensor, 2)); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestBeyond: of values that several processors look through, it finds the largest one, or one that is not finite.
func TestBeyond(t *testing.T) {
	v := make([]float64, 200000)
	v[7], v[150000] = 3, -5
	if d := beyond(v, 4); d.most != 5 || d.at != 150000 {
		t.Errorf("%+v", d)
	}
	v[199999] = math.NaN()
	if d := beyond(v, 8); !math.IsInf(d.most, 1) || d.at != 199999 {
		t.Errorf("%+v", d)
	}
}

// TestPartsAgainstParts: an answer of the last step alone is compared with one of the last step of fewer sequences, as of
// a program that gives no more of the layers within it.
func TestPartsAgainstParts(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 1, Hidden: 1, Layers: 1, Batch: 4, Steps: 7}
	got := []Tensor{{Name: "h_l0", Rows: 4, Cols: 1, First: 6, PerSequence: true, Values: []float64{1, 2, 3, 1}}}
	want := []Tensor{{Name: "h_l0", Rows: 3, Cols: 1, First: 6, PerSequence: true, Values: []float64{1, 2, 3}}}
	if dev, err := Compare(p, got, want); err != nil || dev.MaxAbs != 0 {
		t.Errorf("%+v, %v", dev, err)
	}
	want[0].Values[2] = 4
	if dev, err := Compare(p, got, want); err != nil || dev.MaxAbs != 1 || dev.Row != 2 {
		t.Errorf("%+v, %v, want that sequence 2 is off by 1", dev, err)
	}
	got[0].First = 5
	if _, err := Compare(p, got, want); err == nil {
		t.Error("an answer of a step that is not expected passes")
	}
}
