package axis

import (
	"cmp"
	"slices"
	"strings"
)

// Orders in which axes are written beside that of All. Help, tables, files and the names of points
// have them for good, so they differ. An axis that an order does not name comes last: a new axis needs
// no place in them.
var (
	flags   = order("hidden batch steps streams layers input output history calls symbols embedding groups heads projection resets cell pass precision direction lengths onehot weighted")
	columns = order("cell pass hidden batch steps streams layers input output history heads projection resets calls onehot direction lengths embedding groups precision")
	written = order("cell pass hidden batch steps layers direction lengths resets streams input onehot output history calls embedding groups heads projection weighted precision")
	sorted  = order(first)
	keys    = order("cell pass precision hidden input batch steps layers streams output onehot history calls symbols embedding groups heads weighted direction lengths projection resets")
)

// first are the axes that stand before the objective in Sorted.
const first = "cell pass precision hidden batch steps layers input streams output history calls onehot symbols embedding groups weighted heads direction lengths"

// Sorted lists the axes in the order by which entries of wisdom are sorted. An entry's objective comes
// between the two parts.
func Sorted() (early, late []Axis) {
	n := len(strings.Fields(first))
	return sorted[:n], sorted[n:]
}

// Flags lists the axes in the order of help and of distances: first sizes, the most important ones first, then words.
func Flags() []Axis { return flags }

// Columns lists the axes that have a column, in the order of tables.
func Columns() []Axis {
	return slices.DeleteFunc(slices.Clone(columns), func(a Axis) bool { return a.Title == "" })
}

// Written lists the axes in the order of Point.String.
func Written() []Axis { return written }

// Keys lists the axes in the order of files of wisdom.
func Keys() []Axis { return keys }

// order sorts the axes by a list of names.
func order(names string) []Axis {
	list, named := slices.Clone(table), strings.Fields(names)
	place := func(a Axis) int {
		if i := slices.Index(named, a.Name); i >= 0 {
			return i
		}
		return len(named)
	}
	slices.SortStableFunc(list, func(a, b Axis) int { return cmp.Compare(place(a), place(b)) })
	return list
}
