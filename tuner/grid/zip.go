package grid

import (
	"fmt"
	"slices"
	"strings"
)

// A Zip runs axes in lock-step instead of multiplying them.
type Zip struct {
	Axes []string
	Rows [][]string // values, one column per axis; nil: the values of the axes themselves
}

// ParseZip reads "hidden,batch".
func ParseZip(text string) (Zip, error) {
	var z Zip
	for name := range strings.SplitSeq(text, ",") {
		z.Axes = append(z.Axes, strings.TrimSpace(name))
	}
	return z, z.check()
}

func (z Zip) check() error {
	if len(z.Axes) < 2 {
		return fmt.Errorf("%s is a single axis: write two or more, such as hidden,batch", strings.Join(z.Axes, ","))
	}
	for i, name := range z.Axes {
		if _, err := axisNamed(name); err != nil {
			return err
		}
		if slices.Contains(z.Axes[:i], name) {
			return fmt.Errorf("%s names %s twice", strings.Join(z.Axes, ","), name)
		}
	}
	for _, r := range z.Rows {
		if len(r) != len(z.Axes) {
			return fmt.Errorf("%s has a row of %d values: write one for each of the %d axes", strings.Join(z.Axes, ","), len(r), len(z.Axes))
		}
	}
	return nil
}

// zip makes a dimension in which axes vary in lock-step. given and list are the axes' texts and values.
func (g *Grid) zip(z Zip, given map[string]string, list map[string][]any) (dimension, error) {
	d := dimension{axes: z.Axes}
	if z.Rows != nil {
		for _, texts := range z.Rows {
			row := make([]any, len(z.Axes))
			for i, text := range texts {
				a, err := axisNamed(z.Axes[i])
				if err != nil {
					return d, err
				}
				vals, err := parse(a, text, g.words)
				if err != nil {
					return d, fmt.Errorf("--zip: %s: %w", a.Name, err)
				}
				if len(vals) != 1 {
					return d, fmt.Errorf("--zip: %s: %q is more than one value: write one row for each", a.Name, text)
				}
				row[i] = vals[0]
			}
			d.rows = append(d.rows, row)
		}
		return d, nil
	}
	n := len(list[z.Axes[0]])
	for _, name := range z.Axes {
		if _, ok := given[name]; !ok {
			return d, fmt.Errorf("--zip %s: %s has no values: set --%s", strings.Join(z.Axes, ","), name, name)
		}
		if len(list[name]) != n {
			return d, fmt.Errorf("--zip %s: %s has %d values and %s has %d: write the same number of each", strings.Join(z.Axes, ","), z.Axes[0], n, name, len(list[name]))
		}
	}
	for i := range n {
		row := make([]any, len(z.Axes))
		for j, name := range z.Axes {
			row[j] = list[name][i]
		}
		d.rows = append(d.rows, row)
	}
	return d, nil
}
