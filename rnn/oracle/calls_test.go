package oracle

import (
	"slices"
	"testing"
)

// TestAppendCall: where calls leave out the same steps, their answers together do too. A tensor of which
// no step is shown stays so.
func TestAppendCall(t *testing.T) {
	const steps, calls = 3, 2
	var all []Tensor
	for k := range calls {
		v := float64(k)
		all = appendCall(all, []Tensor{
			{Name: "every step", Rows: 3, Cols: 1, Values: []float64{v, v, v}},
			{Name: "the last step", Rows: 1, Cols: 1, First: 2, Values: []float64{v}},
			{Name: "no step", Cols: 1, First: 3},
		}, (calls-1)*steps)
	}
	for i, want := range []Tensor{
		{Rows: 6, Values: []float64{0, 0, 0, 1, 1, 1}},
		{Rows: 1, First: 5, Values: []float64{1}},
		{First: 6},
	} {
		if got := all[i]; got.Rows != want.Rows || got.First != want.First || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%s: %+v, want %+v", got.Name, got, want)
		}
	}
}
