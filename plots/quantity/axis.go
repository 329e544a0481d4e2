// Package quantity reads off records what tables and figures show: where a
// record lies on an axis, what it measured and how surely, and how such numbers
// are spelled. It neither draws nor prints.
package quantity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rnnbench/internal/safe"
	"rnnbench/results"
)

// An Axis is one property that tells records apart: a number such as the hidden
// size, or a name such as the technique.
type Axis struct {
	Name    string // as a flag spells it
	Title   string // as a figure spells it
	Letter  string // the short form, as in H=512; empty: the value says enough alone
	Numeric bool

	Progress bool // of training: a record a place, with no sizes to prefer for ticks

	text   func(r *results.Record) string
	number func(r *results.Record) (float64, bool)
}

// Text spells where r lies on the axis. Records with the same text are in the
// same place.
func (a Axis) Text(r *results.Record) string { return a.text(r) }

// Number is where r lies on a numeric axis; false where it has no number.
func (a Axis) Number(r *results.Record) (float64, bool) {
	if a.number == nil {
		return 0, false
	}
	return a.number(r)
}

// Tag spells the place of r with the axis named, as in "H=512".
func (a Axis) Tag(r *results.Record) string {
	if a.Letter == "" {
		return a.Text(r)
	}
	return a.Letter + "=" + a.Text(r)
}

// Compare orders records along the axis: numbers by size, techniques as legends
// list them, other names alphabetically with numbers in them by size. Records in
// the same place are equal, whatever their numbers.
func (a Axis) Compare(x, y *results.Record) int {
	if a.Text(x) == a.Text(y) {
		return 0
	}
	if a.Numeric {
		nx, okx := a.Number(x)
		ny, oky := a.Number(y)
		switch {
		case okx && oky && nx < ny:
			return -1
		case okx && oky && nx > ny:
			return 1
		case okx != oky && oky:
			return -1
		case okx != oky:
			return 1
		}
	}
	if a.Name == "impl" {
		if c := Rank(x.Impl.Name, Label(x)) - Rank(y.Impl.Name, Label(y)); c != 0 {
			return c
		}
	}
	return natural(a.Text(x), a.Text(y))
}

// Label is the word for r's technique in tables and legends, on one line.
func Label(r *results.Record) string {
	return OneLine(r.Label())
}

// OneLine replaces what would break a line or hide in it by spaces.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || safe.Hidden(c) || c == unicode.ReplacementChar
	}), " ")
}

// Rank orders a technique with its label among others: the five of this
// program, variants of them, and a vendor's library last.
func Rank(name, label string) int {
	techniques := []string{"naive", "cudnnstyle", "persistent", "scan", "scc"}
	switch i := slices.Index(techniques, label); {
	case i >= 0:
		return i
	case Vendor(name) || Vendor(label):
		return len(techniques) + 1
	}
	return len(techniques)
}

// Vendor says whether a label names the library of a device's maker.
func Vendor(label string) bool {
	l := strings.ToLower(label)
	return l == "cudnn" || strings.HasPrefix(l, "cudnn ") || strings.HasPrefix(l, "vendor")
}

// Axes lists the axes that every record has, in the order of table columns. The
// knobs of techniques and devices are axes too; AxisOf finds them by name.
func Axes() []Axis {
	whole := func(name, title, letter string) Axis {
		return Axis{Name: name, Title: title, Letter: letter, Numeric: true,
			text: func(r *results.Record) string {
				v, _ := r.Point.Axis(name)
				return strconv.Itoa(v)
			},
			number: func(r *results.Record) (float64, bool) {
				v, ok := r.Point.Axis(name)
				return float64(v), ok
			}}
	}
	named := func(name, title string, text func(r *results.Record) string) Axis {
		return Axis{Name: name, Title: title, text: text}
	}
	// Streams that were left to the technique differ from any number that was
	// requested, but on a scale they lie at the number in use.
	streams := Axis{Name: "streams", Title: "streams", Letter: "S", Numeric: true,
		text: func(r *results.Record) string {
			if r.Point.Streams == 0 {
				return "auto"
			}
			return strconv.Itoa(r.Point.Streams)
		},
		number: func(r *results.Record) (float64, bool) {
			n := r.Point.Streams
			if n == 0 {
				n = r.Impl.Streams
			}
			return float64(n), n > 0
		}}
	// An input as wide as the hidden layer follows it and is no axis of its own.
	input := whole("input", "input size", "I")
	input.text = func(r *results.Record) string {
		if r.Point.Input == r.Point.Hidden {
			return "H"
		}
		return strconv.Itoa(r.Point.Input)
	}
	return []Axis{
		named("cell", "cell", func(r *results.Record) string { return OneLine(r.Point.Cell) }),
		named("pass", "pass", func(r *results.Record) string { return r.Point.Pass }),
		whole("hidden", "hidden size", "H"),
		whole("batch", "minibatch", "B"),
		whole("steps", "time steps", "T"),
		streams,
		whole("layers", "layers", "L"),
		input,
		whole("output", "output classes", "O"),
		whole("history", "history steps", "history"),
		whole("heads", "heads", "heads"),
		whole("projection", "projected values", "projection"),
		percentOf(whole("resets", "resets (% of steps)", "resets")),
		whole("calls", "calls", "calls"),
		named("onehot", "input encoding", func(r *results.Record) string {
			if r.Point.OneHot {
				return "one-hot"
			}
			return "dense"
		}),
		named("direction", "direction", func(r *results.Record) string { return r.Point.Direction.String() }),
		{Name: "lengths", Title: "mean length, % of the steps", Numeric: true,
			text:   func(r *results.Record) string { return OneLine(r.Point.Lengths.Short()) },
			number: func(r *results.Record) (float64, bool) { return r.Point.Lengths.Mean(r.Point.Steps) }},
		{Name: "embedding", Title: "embedding", Letter: "embedding", text: embeddingText},
		{Name: "softmax", Title: "softmax", Letter: "softmax", text: softmaxText},
		named("precision", "precision", func(r *results.Record) string { return r.Point.Precision }),
		named("impl", "technique", Label),
		named("device", "device", func(r *results.Record) string { return OneLine(r.Device) }),
		named("cache", "cache", func(r *results.Record) string { return r.Mode.Cache }),
		named("graph", "launch", func(r *results.Record) string {
			if r.Mode.Graph {
				return "graph"
			}
			return "direct"
		}),
		named("data", "input data", func(r *results.Record) string { return r.Mode.Data }),
	}
}

// percentOf spells the numbers of an axis with a percent sign.
func percentOf(a Axis) Axis {
	number := a.text
	a.text = func(r *results.Record) string { return number(r) + "%" }
	return a
}

// embeddingText spells the table of an embedding, symbols × features.
func embeddingText(r *results.Record) string {
	if r.Point.Symbols == 0 {
		return "none"
	}
	return fmt.Sprintf("%dx%d", r.Point.Symbols, r.Point.Embedding)
}

// softmaxText spells what the loss is of.
func softmaxText(r *results.Record) string {
	text := "one"
	if r.Point.Groups > 1 {
		text = strconv.Itoa(r.Point.Groups)
	}
	if r.Point.Weighted {
		text += " weighted"
	}
	return text
}

// AxisOf returns the axis of that name, which may be a knob of one of recs.
func AxisOf(name string, recs []results.Record) (Axis, error) {
	all := Axes()
	if i := slices.IndexFunc(all, func(a Axis) bool { return a.Name == name }); i >= 0 {
		return all[i], nil
	}
	if a, ok := progressAxis(name); ok {
		return a, nil
	}
	known := make([]string, 0, len(all))
	for _, a := range all {
		known = append(known, a.Name)
	}
	knobs := map[string]bool{}
	for i := range recs {
		for k := range recs[i].Impl.Knobs {
			knobs[k] = true
		}
	}
	if knobs[name] {
		return knob(name), nil
	}
	names := make([]string, 0, len(knobs))
	for k := range knobs {
		if !slices.Contains(known, k) { // streams are both
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return Axis{}, fmt.Errorf("unknown axis %q: %s", name, suggest(name, append(known, names...)))
}

func knob(name string) Axis {
	return Axis{Name: name, Title: OneLine(name), Letter: OneLine(name), Numeric: true,
		text: func(r *results.Record) string {
			if v, ok := r.Impl.Knobs[name]; ok {
				return strconv.Itoa(v)
			}
			return "none"
		},
		number: func(r *results.Record) (float64, bool) {
			v, ok := r.Impl.Knobs[name]
			return float64(v), ok
		}}
}

// suggest names what was probably meant, if anything was, and all known names.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return "none are known"
	}
	best, meant := 4+2*min(len(name), 30)/3, ""
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < best {
			best, meant = d, fmt.Sprintf("did you mean %q? ", k)
		}
	}
	if meant == "" {
		return "choose among " + strings.Join(known, ", ")
	}
	return meant + "Choose among " + strings.Join(known, ", ")
}

// distance counts the edits between two names; a common beginning counts for a
// little, so that "hid" finds "hidden".
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = 2 * j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = 2 * (i + 1)
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d += 2
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j+1]+2, row[j]+2)
		}
	}
	d := row[len(b)]
	if a != "" && strings.HasPrefix(b, a) {
		d = min(d, 1)
	}
	return d
}

// natural compares names with the numbers in them by size.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, ra := digits(a)
		nb, rb := digits(b)
		if na != "" && nb != "" {
			x, y := strings.TrimLeft(na, "0"), strings.TrimLeft(nb, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
