package quantity

import (
	"testing"

	"rnnbench/record"
)

// TestMerge: labels name the run if two runs measured the same.
func TestMerge(t *testing.T) {
	rec := func(hidden int) record.Record {
		return record.Record{Point: record.Point{Hidden: hidden}, Impl: record.Impl{Name: "naive"}}
	}
	set := func(label string, hidden ...int) record.Set {
		s := record.Set{Label: label}
		for _, h := range hidden {
			s.Records = append(s.Records, rec(h))
		}
		return s
	}
	apart := Merge([]record.Set{set("a", 8, 16), set("b", 32)})
	if len(apart) != 3 || Label(&apart[2]) != "naive" {
		t.Errorf("%+v", apart)
	}
	sets := []record.Set{set("a", 8, 16), set("b", 8)}
	both := Merge(sets)
	if len(both) != 3 || Label(&both[0]) != "a: naive" || Label(&both[2]) != "b: naive" || Label(&sets[0].Records[0]) != "naive" {
		t.Errorf("%+v", both)
	}
}
