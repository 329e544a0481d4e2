package axis

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// usual is a point with the default of every axis, but an embedding and classes.
func usual() Point {
	return Point{Cell: "lstm", Pass: "forward", Precision: "fp32", Hidden: 512, Input: 512, Batch: 32, Steps: 50, Layers: 1, Symbols: 9, Embedding: 8, Output: 12}
}

// another returns a value that usual does not have.
func another(a Axis) any {
	switch words := a.Values(); {
	case a.Sized():
		return 7
	case words != nil:
		return words[len(words)-1]
	}
	return "gru"
}

// TestRows: every field of a point is one row, and each row says what a reader must know.
func TestRows(t *testing.T) {
	var zero Point
	fields := map[any]string{}
	for i := range reflect.TypeFor[Point]().NumField() {
		fields[reflect.ValueOf(&zero).Elem().Field(i).Addr().Interface()] = reflect.TypeFor[Point]().Field(i).Tag.Get("json")
	}
	letters := map[string]bool{}
	for _, a := range All() {
		if name := fields[a.field(&zero)]; name != a.Name {
			t.Errorf("%s is of the field %q, which has another name in files or another row", a.Name, name)
		}
		delete(fields, a.field(&zero))
		shared := slices.ContainsFunc(All(), func(b Axis) bool { return b.Column == a.Column && b.Title != "" })
		switch {
		case a.Help == "" || a.Default == "":
			t.Errorf("%s has no help or no default", a.Name)
		case a.Title == "" && (a.Column == "" || !shared):
			t.Errorf("%s has no title", a.Name)
		case a.Flag && a.Letter == "" || letters[a.Letter]:
			t.Errorf("%s has the letter %q, which is missing or taken", a.Name, a.Letter)
		case a.Sized() && a.Default == a.Zero && a.Least == 0 && a.Name != "streams" && a.Zero != "none":
			t.Errorf("%s has the word %s for 0, not none", a.Name, a.Zero)
		case a.Values() != nil && !slices.Contains(a.Values(), a.Default):
			t.Errorf("%s has the default %s, which is none of %v", a.Name, a.Default, a.Values())
		case !a.Sized() && (a.Near != Alike && a.Near != Any || a.Memory != Unordered):
			t.Errorf("%s has words, which have no order", a.Name)
		}
		letters[a.Letter] = a.Letter != ""
	}
	for _, name := range fields {
		t.Errorf("the field %s has no row", name)
	}
}

// TestOrders: every order has every axis once.
func TestOrders(t *testing.T) {
	early, late := Sorted()
	for name, list := range map[string][]Axis{"Flags": Flags(), "Columns": columns, "Written": Written(), "Keys": Keys(), "Sorted": slices.Concat(early, late)} {
		var names []string
		for _, a := range list {
			names = append(names, a.Name)
		}
		slices.Sort(names)
		if all := slices.Sorted(slices.Values(Names())); !slices.Equal(names, all) {
			t.Errorf("%s has %v, not %v", name, names, all)
		}
	}
	for _, list := range []string{first, "resets streams"} {
		for _, name := range strings.Fields(list) {
			if _, ok := Named(name); !ok {
				t.Errorf("an order names %s, which is no axis", name)
			}
		}
	}
}

// TestValues: a value that is set is read again, in memory and from a file, it alone differs, and
// texts show it.
func TestValues(t *testing.T) {
	for _, a := range All() {
		p, q := usual(), usual()
		if a.Set(&q, a.Value(&p)); q != p {
			t.Errorf("%s: set to its own value: %v", a.Name, q)
		}
		want := another(a)
		if a.Set(&q, want); a.Value(&q) != want || a.Field(&q) == a.Field(&p) {
			t.Errorf("%s: %v, want %v", a.Name, a.Value(&q), want)
		}
		for _, b := range All() {
			if b.Name != a.Name && b.Field(&q) != b.Field(&p) {
				t.Errorf("%s sets %s, too", a.Name, b.Name)
			}
		}
		if p.String() == q.String() {
			t.Errorf("%s is not in %v", a.Name, q)
		}
		text, err := json.Marshal(q)
		var back Point
		if err != nil || json.Unmarshal(text, &back) != nil || back != q {
			t.Errorf("%s: %v came back as %v from %s, %v", a.Name, q, back, text, err)
		}
		column := a
		if a.Title == "" {
			column = All()[slices.IndexFunc(All(), func(b Axis) bool { return b.Column == a.Column && b.Title != "" })]
		}
		if column.Place(&p) == column.Place(&q) {
			t.Errorf("%s: tables show %s for both", a.Name, column.Place(&q))
		}
		octaves, others := Distance(p, q)
		if far := octaves > 0 || others > 0; far != (a.Near == Alike || a.Near == Octaves || a.Near == Share || a.Near == Set && a.Value(&p) == 0) {
			t.Errorf("%s: %g octaves and %d axes apart", a.Name, octaves, others)
		}
	}
	if s := usual().String(); s != "lstm forward H=512 B=32 T=50 L=1 O=12 embedding=9x8" {
		t.Error(s)
	}
	if s := (Point{Cell: "gru", Pass: "train", Precision: "bf16", Hidden: 8, Input: 4, Batch: 2, Steps: 3, Layers: 2, Direction: "both", Lengths: "1+3", Resets: 3, Streams: 2, OneHot: true,
		Output: 6, History: 5, Calls: 9, Symbols: 7, Embedding: 2, Groups: 2, Heads: 4, Projection: 3, Weighted: true}).String(); s !=
		"gru train H=8 B=2 T=3 L=2 both lengths=1+3 resets=3% S=2 I=4 one-hot O=6 history=5 calls=9 embedding=7x2 groups=2 heads=4 projection=3 weighted bf16" {
		t.Error(s)
	}
}

// TestInvalid: words that are missing and sizes below the least are found.
func TestInvalid(t *testing.T) {
	if p := usual(); !p.Worded() || !p.InRange() {
		t.Errorf("%v is invalid", p)
	}
	for _, a := range All() {
		p := usual()
		switch {
		case a.Sized():
			if a.Set(&p, a.Least-1); p.InRange() {
				t.Errorf("%s may be %d", a.Name, a.Least-1)
			}
		case a.Needed:
			if a.Set(&p, ""); p.Worded() {
				t.Errorf("%s may be missing", a.Name)
			}
		}
	}
}

// TestTakesMore: a point that differs in one axis takes more memory as the axis says, in one direction
// at most.
func TestTakesMore(t *testing.T) {
	for _, a := range All() {
		p, q := usual(), usual()
		if !a.Sized() {
			a.Set(&q, another(a))
			if TakesMore(p, q) || TakesMore(q, p) {
				t.Errorf("%s: words are ordered", a.Name)
			}
			continue
		}
		for _, low := range []int{0, 5} {
			a.Set(&p, low)
			a.Set(&q, 6)
			more, less := TakesMore(q, p), TakesMore(p, q)
			if wantMore := a.Memory == More || a.Memory == MoreWhereSet && low > 0; more != wantMore || less != (a.Memory == Less) {
				t.Errorf("%s of 6 and %d: more %v, less %v", a.Name, low, more, less)
			}
		}
	}
}

// TestNormalise: words of files become those of memory, and a word that is none is refused.
func TestNormalise(t *testing.T) {
	p := usual()
	p.Direction, p.Lengths = "forward", "full"
	if err := p.Normalise(); err != nil || p != usual() {
		t.Errorf("%#v, %v", p, err)
	}
	p.Direction = "sideways"
	if err := p.Normalise(); err == nil || !strings.Contains(err.Error(), `"sideways" is not a direction`) {
		t.Error(err)
	}
}
