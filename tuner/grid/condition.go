package grid

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// A Condition is one comparison, such as hidden<=2048 or impl!=naive.
type Condition struct {
	key, op string
	word    string  // the value of axes of words and of impl
	number  float64 // the value of all other keys
}

// derived lists the keys of conditions that are neither axes nor impl.
func derived() []string { return []string{"mem", "flops", "intensity"} }

// ParseCondition reads a condition: a key, one of = != < <= > >=, and a value.
// Keys are the axes, impl, mem (bytes, as 16GiB), flops and intensity.
func ParseCondition(text string) (Condition, error) {
	at := strings.IndexAny(text, "=!<>")
	if at < 0 {
		return Condition{}, fmt.Errorf("%q is not a condition: write a key, one of = != < <= > >= and a value, such as hidden<=2048", text)
	}
	end := at
	for end < len(text) && strings.IndexByte("=!<>", text[end]) >= 0 {
		end++
	}
	c := Condition{key: strings.TrimSpace(text[:at]), op: text[at:end]}
	rest := strings.TrimSpace(text[end:])
	if c.op == "==" {
		c.op = "="
	}
	if !slices.Contains([]string{"=", "!=", "<", "<=", ">", ">="}, c.op) {
		return Condition{}, fmt.Errorf("%q has the operator %q: write one of = != < <= > >=", text, c.op)
	}
	if rest == "" {
		return Condition{}, fmt.Errorf("%q has no value: write one, such as hidden<=2048", text)
	}
	if c.key == "impl" {
		s, err := ParseSpec(rest, nil)
		switch {
		case err == nil && s.Label == "":
			c.word = s.String()
		case strings.ContainsAny(rest, ":="):
			return Condition{}, fmt.Errorf("%q compares impl with %q: write a technique, a technique with knobs as in --impl, or a label", text, rest)
		default:
			c.word = rest // a label, such as a stage of Appleyard's ladder
		}
	} else if !slices.Contains(derived(), c.key) {
		a, err := axisNamed(c.key)
		if err != nil {
			return Condition{}, Unknown("key", c.key, slices.Concat(axis.Names(), []string{"impl"}, derived()))
		}
		switch {
		case !a.Sized():
			word, err := read(a, rest, Vocabulary{})
			if err != nil {
				return Condition{}, err
			}
			c.word = word
		case a.Zero != "" && rest == a.Zero:
			if a.Least > 0 {
				return Condition{}, fmt.Errorf("%q compares a size with a word: write a number", text)
			}
			return c, nil // 0
		}
	}
	if c.word != "" {
		if c.op != "=" && c.op != "!=" {
			return Condition{}, fmt.Errorf("%q orders words: compare %s with = or !=", text, c.key)
		}
		return c, nil
	}
	n, err := parseNumber(rest)
	if err != nil {
		return Condition{}, fmt.Errorf("%q: %w", text, err)
	}
	c.number = n
	return c, nil
}

// parseNumber reads 2048, 1.5G, 1e12 or 16GiB.
func parseNumber(s string) (float64, error) {
	text, _ := strings.CutSuffix(s, "B")
	scale := 1.0
	for _, u := range []struct {
		name  string
		value float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}} {
		if short, ok := strings.CutSuffix(text, u.name); ok {
			text, scale = short, u.value
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	n *= scale
	if err != nil || strings.Trim(text, "0123456789.eE+-") != "" || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("%q is not a number: write one such as 2048, 1.5G, 1e12 or 16GiB", s)
	}
	return n, nil
}

// ParseBytes reads a number of bytes as conditions on mem do, from 1 byte to 1 EiB, such as 8GiB.
func ParseBytes(text string) (int64, error) {
	n, err := parseNumber(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: write one such as 8GiB or 500MiB", text)
	}
	if n < 1 || n > 1<<60 {
		return 0, fmt.Errorf("%q must be from 1 byte to 1 EiB", text)
	}
	return int64(n), nil
}

// String writes c as ParseCondition reads it.
func (c Condition) String() string {
	if c.word != "" {
		return c.key + c.op + c.word
	}
	return c.key + c.op + strconv.FormatFloat(c.number, 'g', -1, 64)
}

// ofTechnique reports whether c depends on the technique too, not on the point alone.
func (c Condition) ofTechnique() bool {
	return c.key == "impl" || c.key == "mem" || c.key == "intensity"
}

// holds reports whether c is true of p run by s.
func (c Condition) holds(p record.Point, s Spec, v Vocabulary) (bool, error) {
	if c.key == "impl" {
		o, err := ParseSpec(c.word, nil)
		return (s.Label == c.word || err == nil && s.isA(o)) == (c.op == "="), nil
	}
	if c.word != "" {
		a, _ := axis.Named(c.key) // ParseCondition checked it
		return (a.Value(&p) == c.word) == (c.op == "="), nil
	}
	var x float64
	if n, ok := p.Axis(c.key); ok {
		x = float64(n)
	} else {
		if v.Derive == nil {
			return false, fmt.Errorf("--where %v: %s is not available here", c, c.key)
		}
		if !c.ofTechnique() {
			s = Spec{}
		}
		var err error
		if x, err = v.Derive(p, s, c.key); err != nil {
			return false, fmt.Errorf("--where %v at %v: %w", c, p, err)
		}
	}
	switch c.op {
	case "=":
		return x == c.number, nil
	case "!=":
		return x != c.number, nil
	case "<":
		return x < c.number, nil
	case "<=":
		return x <= c.number, nil
	case ">":
		return x > c.number, nil
	}
	return x >= c.number, nil
}

// all reports whether every condition holds.
func all(conditions []Condition, p record.Point, s Spec, v Vocabulary) (bool, error) {
	for _, c := range conditions {
		if ok, err := c.holds(p, s, v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}
