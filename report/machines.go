package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Facts compares the runs' machines: a row for each fact, a column for each run.
func Facts(sets []record.Set) *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Run"}}}
	for _, s := range sets {
		t.Columns = append(t.Columns, table.Column{Name: s.Label})
	}
	for _, f := range facts() {
		row := []table.Cell{table.Text(f.name)}
		known := false
		for _, s := range sets {
			text := f.of(&s.Manifest)
			known = known || text != ""
			row = append(row, table.Text(text))
		}
		if known {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// nodes says how far the machines of merged runs differ.
func nodes(sets []record.Set) []string {
	var list []string
	for i := range sets {
		m := sets[i].Manifest.Merged
		list = append(list, m.Lines()...)
		if names := m.Differ(); names != nil {
			list = append(list, "These nodes differ by more than the noise, so compare only techniques at the same point: "+strings.Join(names, ", "))
		}
	}
	return list
}

// A fact is something about a run that affects its speed.
type fact struct {
	name string
	of   func(*record.Manifest) string
}

func facts() []fact {
	return []fact{
		{"Run", func(m *record.Manifest) string { return m.Run }},
		{"Plan", func(m *record.Manifest) string { return m.Scope.Summary }},
		{"Started", func(m *record.Manifest) string { return when(m.Started) }},
		{"Ended", ended},
		{"Resumed", resumed},
		{"Device", devices},
		{"Processor", processor},
		{"Caches", func(m *record.Manifest) string {
			var words []string
			for _, c := range m.Environment.CPU.Caches {
				words = append(words, fmt.Sprintf("L%d %s %s", c.Level, c.Kind, quantity.Bytes(float64(c.Bytes))))
			}
			return strings.Join(words, ", ")
		}},
		{"Clock", func(m *record.Manifest) string { return join(m.Environment.CPU.Governor, m.Environment.CPU.Driver) }},
		{"Steal time", func(m *record.Manifest) string {
			if s := m.Environment.CPU.Steal; s != nil {
				return fmt.Sprintf("%.1f %%", 100**s)
			}
			return ""
		}},
		{"Memory", func(m *record.Manifest) string {
			if m.Environment.Memory.Total == 0 {
				return ""
			}
			return quantity.Bytes(float64(m.Environment.Memory.Total))
		}},
		{"System", func(m *record.Manifest) string {
			h := m.Environment.Host
			return join(h.Name, h.System, h.Kernel, h.Arch, h.Container, h.VM)
		}},
		{"Load", load},
		{"Program", func(m *record.Manifest) string {
			t := m.Environment.Tool
			return join(t.Version, t.Revision, t.Go)
		}},
	}
}

func when(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }

// join joins the non-empty words with dots.
func join(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " · ")
}

func ended(m *record.Manifest) string {
	if m.Finished == nil || m.Exit == nil {
		return "not recorded (the run may have been killed)"
	}
	return fmt.Sprintf("after %v, with exit code %d", m.Finished.Sub(m.Started).Round(time.Second), *m.Exit)
}

func resumed(m *record.Manifest) string {
	if len(m.Resumed) == 0 {
		return ""
	}
	last := when(m.Resumed[len(m.Resumed)-1])
	if len(m.Resumed) == 1 {
		return last
	}
	return fmt.Sprintf("%d times, last %s", len(m.Resumed), last)
}

func devices(m *record.Manifest) string {
	var list []string
	for _, d := range m.Devices {
		words := []string{d.Name, d.Key}
		if d.Peak != nil {
			words = append(words, "peak "+quantity.SI(*d.Peak, "FLOP/s")+unsure(d.PeakRate()))
		}
		if d.Bandwidth != nil {
			words = append(words, "copy rate "+quantity.SI(*d.Bandwidth, "B/s")+unsure(d.CopyRate()))
		}
		for _, k := range []string{"simd", "workers"} {
			if v := d.Facts[k]; v != "" {
				words = append(words, k+" "+v)
			}
		}
		list = append(list, join(words...))
	}
	return strings.Join(list, "; ")
}

// unsure marks a rate that a manifest has, but that no record is compared with.
func unsure(rate float64) string {
	if rate == 0 {
		return " (unsure)"
	}
	return ""
}

func processor(m *record.Manifest) string {
	c := m.Environment.CPU
	if c.Threads == 0 {
		return ""
	}
	return join(c.Model, fmt.Sprintf("%s, %s, %s, %d allowed", quantity.Plural(c.Sockets, "socket"), quantity.Plural(c.Cores, "core"), quantity.Plural(c.Threads, "thread"), c.Allowed))
}

func load(m *record.Manifest) string {
	if len(m.Environment.Host.Load) == 0 {
		return ""
	}
	s := fmt.Sprintf("%.2f before", m.Environment.Host.Load[0])
	if len(m.Load) > 0 {
		s += fmt.Sprintf(", %.2f after", m.Load[0])
	}
	return s
}

// advice lists the measurement problems of all runs.
func advice(sets []record.Set) []record.Advice {
	var list []record.Advice
	for _, s := range sets {
		if s.Manifest.Environment.Tool.Go == "" {
			continue // the environment is unknown
		}
		for _, a := range record.Warnings(s.Manifest.Environment) {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// Commands returns the command lines that made the runs, without --out.
func Commands(sets []record.Set) []Command {
	var list []Command
	for _, s := range sets {
		if len(s.Manifest.Argv) == 0 {
			continue
		}
		var words []string
		skip := false
		for _, a := range s.Manifest.Argv {
			switch {
			case skip:
				skip = false
			case a == "--out":
				skip = true
			case strings.HasPrefix(a, "--out="):
			default:
				words = append(words, quote(a))
			}
		}
		list = append(list, Command{s.Label, s.Manifest.Started.Format("2006-01-02"), strings.Join(words, " ")})
	}
	return list
}

// quote makes a word safe for a shell.
func quote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_=+:,./%@", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
