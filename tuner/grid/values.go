package grid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxSize is the largest size of an axis.
const MaxSize = 1 << 30

// MaxPoints bounds the values of an axis and the points of a grid. Nobody could wait for so many.
const MaxPoints = 1_000_000

// Values is a list of sizes in the form in which it was written:
//
//	values = term {"," term}
//	term   = size | size ":" size ":" size | size ":" size ":x" factor
//	size   = digits ["k" | "M" | "G" | "Ki" | "Mi" | "Gi"]
//
// A range includes its stop where a step falls on it. With x, each size is the
// one before times the factor: 256:4096:x2 is 256, 512, 1024, 2048, 4096.
type Values struct{ terms []term }

// A term is one size (step and factor 0) or a range.
type term struct{ from, to, step, factor int }

// ParseValues reads sizes. zero is the word for 0; "": 0 is not allowed.
func ParseValues(s, zero string) (Values, error) {
	var v Values
	total := 0
	for text := range strings.SplitSeq(s, ",") {
		t, err := parseTerm(strings.TrimSpace(text), zero)
		if err != nil {
			return Values{}, err
		}
		if total += t.count(); total > MaxPoints {
			return Values{}, fmt.Errorf("%q has more than %d values: use a larger step, or multiply with x2", s, MaxPoints)
		}
		v.terms = append(v.terms, t)
	}
	return v, nil
}

func parseTerm(s, zero string) (term, error) {
	parts := strings.Split(s, ":")
	if len(parts) == 1 {
		n, err := parseSize(s, zero)
		return term{from: n, to: n}, err
	}
	if len(parts) != 3 {
		return term{}, fmt.Errorf("%q is not a range: write start:stop:step, such as 64:512:64, or start:stop:xK, such as 256:4096:x2", s)
	}
	from, err := parseSize(parts[0], "")
	if err != nil {
		return term{}, err
	}
	to, err := parseSize(parts[1], "")
	if err != nil {
		return term{}, err
	}
	if from > to {
		return term{}, fmt.Errorf("%q starts above its stop: write %s:%s:%s", s, parts[1], parts[0], parts[2])
	}
	step := strings.TrimSpace(parts[2])
	if factor, ok := strings.CutPrefix(step, "x"); ok {
		k, err := strconv.Atoi(factor)
		if err != nil || k < 2 || k > MaxSize || strings.HasPrefix(factor, "+") {
			return term{}, fmt.Errorf("%q has the factor %q: write a whole number of at least 2, such as x2", s, factor)
		}
		return term{from: from, to: to, factor: k}, nil
	}
	n, err := parseSize(step, "")
	if err != nil {
		return term{}, fmt.Errorf("%q has the step %q: write a whole number of at least 1, such as 64, or a factor, such as x2", s, step)
	}
	return term{from: from, to: to, step: n}, nil
}

// parseSize reads one size.
func parseSize(s, zero string) (int, error) {
	s = strings.TrimSpace(s)
	if zero != "" && (s == zero || s == "0") {
		return 0, nil
	}
	digits := strings.TrimRight(s, "kKMGi")
	unit, known := int64(0), false
	for _, u := range sizeUnits() {
		if s[len(digits):] == u.name {
			unit, known = u.value, true
		}
	}
	advice := "a whole number such as 512, 4k (4000) or 4Ki (4096)"
	if zero != "" {
		advice += " or " + zero
	}
	if !known || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a size: write %s", s, advice)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > MaxSize/unit {
		return 0, fmt.Errorf("%s is too large: write at most %d", s, MaxSize)
	}
	if n == 0 {
		return 0, fmt.Errorf("0 is not allowed here: write %s", advice)
	}
	return int(n * unit), nil
}

type unit struct {
	name  string
	value int64
}

func sizeUnits() []unit {
	return []unit{{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}}
}

func (t term) count() int {
	switch {
	case t.step > 0:
		return (t.to-t.from)/t.step + 1
	case t.factor > 0:
		n := 1
		for v := t.from; v <= t.to/t.factor; v *= t.factor {
			n++
		}
		return n
	}
	return 1
}

// List returns the sizes in the order written, with duplicates.
func (v Values) List() []int {
	var list []int
	for _, t := range v.terms {
		at := t.from
		for i := range t.count() {
			if i > 0 && t.factor > 0 {
				at *= t.factor
			} else if i > 0 {
				at += t.step
			}
			list = append(list, at)
		}
	}
	return list
}

// Format writes v in the grammar that ParseValues reads.
func (v Values) Format(zero string) string {
	parts := make([]string, len(v.terms))
	for i, t := range v.terms {
		switch {
		case t.step > 0:
			parts[i] = fmt.Sprintf("%d:%d:%d", t.from, t.to, t.step)
		case t.factor > 0:
			parts[i] = fmt.Sprintf("%d:%d:x%d", t.from, t.to, t.factor)
		case t.from == 0:
			parts[i] = zero
		default:
			parts[i] = strconv.Itoa(t.from)
		}
	}
	return strings.Join(parts, ",")
}

// String writes v in the grammar that ParseValues reads.
func (v Values) String() string { return v.Format("0") }

// unique returns list without duplicates, in order.
func unique[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool {
		twice := seen[v]
		seen[v] = true
		return twice
	})
}
