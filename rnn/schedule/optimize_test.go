package schedule

import (
	"math"
	"strings"
	"testing"
)

// TestSquaresBands: bands cover every row once, whatever their number.
func TestSquaresBands(t *testing.T) {
	for rows := 1; rows < 40; rows++ {
		a := (&Matrix{Rows: rows, Cols: 3}).All()
		for k := 1; k <= rows; k++ {
			op, at := Squares{A: a, Out: (&Matrix{Rows: 1, Cols: k}).All()}, 0
			for i := range k {
				b := op.Band(i)
				if b.Row != at || b.Rows < 1 || b.Cols != 3 {
					t.Fatalf("band %d of %d of %d rows is %+v, not from row %d", i, k, rows, b, at)
				}
				at += b.Rows
			}
			if at != rows {
				t.Fatalf("%d bands of %d rows end at %d", k, rows, at)
			}
		}
	}
}

// TestUpdateScale: gradients are cut to the limit of their norm, and dropped where that is
// not finite.
func TestUpdateScale(t *testing.T) {
	one := (&Matrix{Rows: 1, Cols: 1}).All()
	for _, c := range []struct {
		squares             View
		unscale, limit, sum float64
		want                float64
	}{
		{View{}, 0.5, 1, math.NaN(), 0.5}, // nothing is known of the norm
		{one, 0.5, 0, 400, 0.5},
		{one, 0.5, 20, 400, 0.5},
		{one, 0.5, 5, 400, 0.5 * 5 / (10 + 1e-6)},
		{one, 1, 5, math.Inf(1), 0},
		{one, 1, 0, math.NaN(), 0},
	} {
		rates := []float64{Rate: 1, Root: 1, Unscale: c.unscale, Limit: c.limit}
		if got := (Update{Squares: c.squares}).Scale(rates, c.sum); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

// TestUpdateStep: two steps of each rule, worked out by hand.
func TestUpdateStep(t *testing.T) {
	rates := []float64{Rate: 0.1, Root: 2, Unscale: 1, Limit: 0}
	for _, c := range []struct {
		op   Update
		want [2]float64
	}{
		{Update{Rule: SGD}, [2]float64{0.8, 0.7}},
		{Update{Rule: SGD, Moment: make([]View, 1), Beta1: 0.5}, [2]float64{0.8, 0.6}},
		// m = 2, 2.
		{Update{Rule: SGD, Moment: make([]View, 1), Beta1: 0.5, Nesterov: true}, [2]float64{0.7, 0.5}},
		// m = 1, 1; v = 2, 1.5.
		{Update{Rule: Adam, Moment: make([]View, 2), Beta1: 0.5, Beta2: 0.5}, [2]float64{1 - 0.1/(2*math.Sqrt2), 1 - 0.1/(2*math.Sqrt2) - 0.1*1/(2*math.Sqrt(1.5))}},
	} {
		w, moment := 1.0, make([]float64, len(c.op.Moment))
		for i, g := range []float64{2, 1} {
			if w = c.op.Step(rates, w, g, moment); math.Abs(w-c.want[i]) > 1e-12 {
				t.Errorf("%v with %d moments: after step %d the parameter is %g, not %g", c.op.Rule, len(moment), i+1, w, c.want[i])
			}
		}
	}
}

// TestUpdateShapes: shapes that do not fit are refused.
func TestUpdateShapes(t *testing.T) {
	b := NewBuilder(1)
	w, g, m, rates := b.Matrix("w", 3, 4), b.Matrix("g", 3, 4), b.Matrix("m", 3, 4), b.Matrix("rates", 1, RateColumns)
	good := Update{Rule: SGD, Param: w.All(), Grad: g.All(), Moment: []View{m.All()}, Rates: rates.All(), Beta1: 0.9}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Update){
		"a gradient of fewer rows": func(u *Update) { u.Grad = g.Band(0, 2) },
		"a moment of fewer rows":   func(u *Update) { u.Moment = []View{m.Band(1, 2)} },
		"a copy of fewer columns":  func(u *Update) { u.Copy = m.All().Columns(0, 2) },
		"two moments for SGD":      func(u *Update) { u.Moment = append(u.Moment, g.All()) },
		"one moment for Adam":      func(u *Update) { u.Rule = Adam },
		"Nesterov without moment":  func(u *Update) { u.Moment, u.Nesterov = nil, true },
		"Nesterov for Adam":        func(u *Update) { u.Rule, u.Moment, u.Nesterov = Adam, append(u.Moment, g.All()), true },
		"rates of one column":      func(u *Update) { u.Rates = rates.All().Columns(0, 1) },
		"itself as its gradient":   func(u *Update) { u.Grad = w.All() },
	} {
		u := good
		change(&u)
		if err := u.check(); err == nil {
			t.Errorf("%s is accepted", name)
		} else if !strings.Contains(err.Error(), "sgd") && !strings.Contains(err.Error(), "adam") {
			t.Errorf("%s: %v does not name the operation", name, err)
		}
	}
	b.Do(0, good)
	if _, err := b.Schedule(); err != nil {
		t.Error(err)
	}
	b.Do(0, Update{Rule: SGD})
	if _, err := b.Schedule(); err == nil {
		t.Error("an update of nothing is accepted")
	}
}

// TestUpdateFLOPs: the operations of each rule, counted by hand.
func TestUpdateFLOPs(t *testing.T) {
	param := (&Matrix{Rows: 3, Cols: 5}).All()
	for _, c := range []struct {
		rule     Rule
		moments  int
		nesterov bool
		each     int64
	}{
		{SGD, 0, false, 2},   // times the rate, less that
		{SGD, 1, false, 4},   // and the momentum
		{SGD, 1, true, 6},    // twice
		{Adam, 2, false, 10}, // two moments, the square, the root, the sum and the quotient
	} {
		if got := (Update{Rule: c.rule, Param: param, Moment: make([]View, c.moments), Nesterov: c.nesterov}).FLOPs(); got != c.each*15 {
			t.Errorf("%v with %d moments: %d operations, want %d", c.rule, c.moments, got, c.each*15)
		}
	}
}
