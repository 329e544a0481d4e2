// Package axis is the table of axes: every property by which the problems of a sweep differ, with its
// name, its meaning and how it is written.
//
// The flags, the grammar of grids, the columns of tables, records, wisdom and the comparisons of
// points are derived from the table. A new axis is a field of Point and a row of the table.
package axis

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// An Axis is a row of the table: one property of a point.
type Axis struct {
	Name   string
	Letter string // short name in points and tables; "": none
	Flag   bool   // the letter is a flag of the command line, too
	Help   string // what the values mean
	Title  string // of the column in tables and figures; "": another axis has the column
	Column string // name of the column that axes share; "": the axis has a column of its own

	Default string   // in the words of flags
	Zero    string   // of sizes: word for 0; "": 0 is not allowed
	Neutral int      // of sizes: the value that 0 stands for, which points have as 0
	Least   int      // of sizes: the least value in a point
	Percent bool     // of sizes: a percentage
	Words   []string // the values of an axis of words; nil: others know them
	Open    bool     // Words are examples
	File    string   // how the names of files end that hold a value; "": none do
	Forms   string   // how values are written, for help; "": as words or sizes

	First  bool // files have the axis since their first version, and always write it
	Needed bool // a point without a word for it is invalid
	Always bool // texts never leave it out
	Bare   bool // the value says what it is, and needs no name
	Train  bool // a flag of training; other axes follow from the task

	Network bool // it says what a network is, not how it is run

	Near   Nearness // of points that differ in it
	Memory Growth   // that a larger value takes

	field func(*Point) any // pointer to the value, of kind string, bool or int

	// These replace what follows from the value. Each may be nil.
	usual  func(others map[string]string) string // DefaultAt
	place  func(*Point) string                   // Place
	number func(*Point) (float64, bool)          // Number
	text   func(*Point) string                   // in Point.String

	sized bool   // the value is an int
	empty string // place of the zero point
}

// prepared sets what follows from the rows.
func prepared(axes []Axis) []Axis {
	for i := range axes {
		a := &axes[i]
		_, a.sized = a.field(new(Point)).(*int)
		a.empty = a.Place(new(Point))
	}
	return axes
}

// All lists the axes, from the outermost loop of a grid to the innermost. Callers do not change the list.
func All() []Axis { return table }

// Named returns the axis of that name; false: there is none.
func Named(name string) (Axis, bool) {
	i := slices.IndexFunc(table, func(a Axis) bool { return a.Name == name })
	if i < 0 {
		return Axis{}, false
	}
	return table[i], true
}

// Names lists the names of All.
func Names() []string {
	names := make([]string, len(table))
	for i, a := range table {
		names[i] = a.Name
	}
	return names
}

// Sized reports whether the values of a are sizes, and not words.
func (a Axis) Sized() bool { return a.sized }

// Values lists the words of a; nil: a has sizes, or its words are known elsewhere.
func (a Axis) Values() []string {
	if _, ok := a.field(new(Point)).(*bool); ok {
		return []string{"false", "true"}
	}
	return a.Words
}

// DefaultAt is a's default, given the values of other axes by name, in the words of flags.
func (a Axis) DefaultAt(others map[string]string) string {
	if a.usual != nil {
		return a.usual(others)
	}
	return a.Default
}

// Field returns p's value as it is in memory: a string, a bool or an int, or a type of that kind.
// Such values can be compared.
func (a Axis) Field(p *Point) any { return reflect.ValueOf(a.field(p)).Elem().Interface() }

// Value returns p's value as flags write it: a word, or an int on an axis of sizes.
func (a Axis) Value(p *Point) any {
	switch f := a.field(p).(type) {
	case *int:
		return *f
	case *bool:
		return strconv.FormatBool(*f)
	default:
		word := reflect.ValueOf(f).Elem().String()
		if word == "" && !a.Needed {
			word = a.Default
		}
		return word
	}
}

// Set sets p's value to one as Value returns it.
func (a Axis) Set(p *Point, value any) {
	switch f := a.field(p).(type) {
	case *int:
		if *f = value.(int); *f == a.Neutral {
			*f = 0
		}
	case *bool:
		*f = value == "true"
	default:
		word := value.(string)
		if word == a.Default && !a.Needed {
			word = "" // as in points from before the axis
		}
		reflect.ValueOf(f).Elem().SetString(word)
	}
}

// Size returns p's value on an axis of sizes; false: a has words.
func (a Axis) Size(p *Point) (int, bool) {
	n, ok := a.field(p).(*int)
	if !ok {
		return 0, false
	}
	if *n == 0 {
		return a.Neutral, true
	}
	return *n, true
}

// Tag is the name of a in short texts, as in H=512; "": the value needs none.
func (a Axis) Tag() string {
	switch {
	case a.Bare:
		return ""
	case a.Column != "":
		return a.Column
	}
	return cmp.Or(a.Letter, a.Name)
}

// Place returns p's place on a, as tables and figures write it.
func (a Axis) Place(p *Point) string {
	if a.place != nil {
		return a.place(p)
	}
	n, sized := a.Size(p)
	switch {
	case !sized:
		return a.Value(p).(string)
	case a.Percent:
		return strconv.Itoa(n) + "%"
	}
	return strconv.Itoa(n)
}

// Usual is the place that texts leave out; false: there is none.
func (a Axis) Usual() (string, bool) { return a.empty, !a.Always }

// Numeric reports whether the column of a has numbers.
func (a Axis) Numeric() bool { return a.number != nil || a.sized && a.Column == "" }

// Number returns p's place on a numeric axis; false: it has no number.
func (a Axis) Number(p *Point) (float64, bool) {
	if a.number != nil {
		return a.number(p)
	}
	n, ok := a.Size(p)
	return float64(n), ok
}

// write writes p's value with the name of a; "": it is usual, or another axis writes it.
func (a Axis) write(p *Point) string {
	if a.text != nil {
		return a.text(p)
	}
	place := a.Place(p)
	switch {
	case !a.Always && place == a.empty, a.place == nil && a.Column != "":
		return ""
	case a.Tag() == "":
		return place
	}
	return a.Tag() + "=" + place
}

// String spells p in one line and leaves out usual values.
func (p Point) String() string {
	parts := make([]string, 0, len(table))
	for _, a := range Written() {
		if s := a.write(&p); s != "" || a.Always && a.text == nil {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

// Place is p without its streams. Points of one place are rivals.
func (p Point) Place() Point {
	p.Streams = 0
	return p
}

// Timed is p without what changes no time.
func (p Point) Timed() Point {
	for _, a := range table {
		if a.Near == Any {
			a.Set(&p, a.Default)
		}
	}
	return p
}

// Axis returns the value of an axis of sizes; false: there is no such axis.
func (p Point) Axis(name string) (int, bool) {
	a, ok := Named(name)
	if !ok {
		return 0, false
	}
	return a.Size(&p)
}

// Worded reports whether p has all words that a point needs.
func (p Point) Worded() bool {
	return !slices.ContainsFunc(table, func(a Axis) bool { return a.Needed && a.Value(&p) == "" })
}

// Normalise puts the words of p in the form that they have in memory. Its error is about a word that
// its axis refuses.
func (p *Point) Normalise() error {
	for _, a := range table {
		field := a.field(p)
		word := reflect.ValueOf(field).Elem()
		if u, ok := field.(encoding.TextUnmarshaler); ok && word.String() != "" {
			if err := u.UnmarshalText([]byte(word.String())); err != nil {
				return err
			}
		}
	}
	return nil
}

// InRange reports whether no size of p is below its least value.
func (p Point) InRange() bool {
	return !slices.ContainsFunc(table, func(a Axis) bool {
		n, ok := a.Size(&p)
		return ok && n < a.Least
	})
}
