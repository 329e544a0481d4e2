package agenda

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Line says in one line what will be measured and how long it takes.
func (f *Forecast) Line(summary string) string {
	skipped := map[string]int{}
	n := 0
	for _, e := range f.Entries {
		if e.Declined != "" {
			skipped[kindOfSkip(e.Code)]++
			n++
		}
	}
	s := summary
	if n > 0 {
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(skipped)) {
			kinds = append(kinds, fmt.Sprintf("%s: %d", k, skipped[k]))
		}
		least := ""
		if !f.Whole {
			least = "at least "
		}
		if len(kinds) == 1 {
			kinds[0], _, _ = strings.Cut(kinds[0], ":")
		}
		s += fmt.Sprintf("; %s%d of them skipped (%s)", least, n, strings.Join(kinds, ", "))
	}
	s += "; about " + quantity.Duration(f.Seconds)
	if f.Others != "" {
		s += ", and longer while other programs use " + f.Others
	}
	return s
}

// kindOfSkip names the cause in a reason code in one word.
func kindOfSkip(code string) string {
	if kind, ok := strings.CutPrefix(code, "unsupported_"); ok {
		return kind
	}
	if code == record.ReasonMemory {
		return "memory"
	}
	return "unsupported"
}

// Budget says how many records a budget covers.
func (f *Forecast) Budget(budget time.Duration) string {
	n := f.Within(budget)
	if n == len(f.Entries) {
		return fmt.Sprintf("budget: %v covers all of %s", budget, quantity.Plural(n, "record"))
	}
	return fmt.Sprintf("budget: %v covers about the first %d of %s", budget, n, quantity.Plural(len(f.Entries), "record"))
}

// Lines is what a dry run prints. free is the available memory in bytes; 0: unknown.
func (f *Forecast) Lines(summary string, budget time.Duration, free int64) []string {
	list := []string{f.Line(summary)}
	if budget > 0 {
		list = append(list, f.Budget(budget))
	}
	if f.Most.Bytes > 0 {
		list = append(list, f.Most.line(free))
	}
	return append(list, table.SkipLines(f.Records())...)
}

// line says how much memory m is and how much is available.
func (m *Load) line(free int64) string {
	may := "free memory is unknown"
	if free > 0 {
		may = quantity.Bytes(float64(free)) + " available"
	}
	by := m.Labels[0]
	if n := len(m.Labels); n > 1 {
		by = fmt.Sprintf("by %d techniques", n)
	}
	return fmt.Sprintf("memory: at most %s, for %v %s; %s", quantity.Bytes(float64(m.Bytes)), m.Point, by, may)
}

// Table lists every entry.
func (f *Forecast) Table() *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Name: "point", Key: "point"}, {Name: "impl", Key: "impl"}, {Key: "ops", Right: true},
		{Name: "memory", Key: "mem_bytes", Right: true}, {Key: "estimate_s", Right: true}, {Key: "status"}, {Key: "reason_code"},
		{Name: "reason", Key: "reason"},
	}}
	for _, e := range f.Entries {
		row := []table.Cell{table.Text(e.Point.String()), table.Text(e.Spec.Label), {}, {}, {}, table.Text("planned"), {}, {}}
		if e.Ops > 0 {
			row[2] = table.Int(e.Ops)
		}
		if e.Memory > 0 {
			row[3] = table.Cell{Text: quantity.Bytes(float64(e.Memory)), Value: e.Memory}
		}
		if e.Declined == "" {
			row[4] = table.Number(e.Seconds, "")
		} else {
			row[5], row[6], row[7] = table.Text(string(record.Skipped)), table.Text(e.Code), table.Text(e.Declined)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
