package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/wisdom"
)

// TestReproduceAuto: an experiment with auto follows named wisdom only.
func TestReproduceAuto(t *testing.T) {
	t.Chdir(t.TempDir())
	defer func(was time.Duration) { bench.Patience = was }(bench.Patience)
	bench.Patience = 1 // as where laying out takes long
	line := "reproduce random-layers --quick --no-verify --threads 1 --budget 1ns --seed 6" + strings.Replace(quickly, "2", "1", 2)
	rnnbench(t, line+" --out plain").want(t, exit.Done, []string{"auto chose"}, []string{"--resume plain"})
	m, recs, _, err := record.Read("plain")
	if err != nil || len(recs) == 0 {
		t.Fatalf("%v: %d records", err, len(recs))
	}
	auto := func(recs []record.Record) *record.Record {
		for i := range recs {
			if recs[i].Impl.Label == auto.Name {
				return &recs[i]
			}
		}
		t.Fatal("no record is auto's")
		return nil
	}
	first := auto(recs)
	if c := first.Impl.Choice; c == nil || c.Match == wisdom.Exact || c.Match == wisdom.Nearest {
		t.Fatalf("%+v", first.Impl)
	}
	other := "persistent"
	if first.Impl.Name == other {
		other = "cudnnstyle"
	}
	e := wisdom.Entry{Device: m.Devices[0].Key, Cache: "hot", Point: first.Point, Impl: other, Seconds: 1, Tried: 2, Complete: true}
	var book wisdom.Book
	for _, path := range []string{"named.toml", filepath.Join("home", "wisdom.toml")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := book.Keep(path, e); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RNNBENCH_WISDOM", filepath.Join("home", "wisdom.toml"))
	for _, c := range []struct{ flags, want string }{{" --out own", first.Impl.Name}, {" --out named --wisdom named.toml", other}} {
		rnnbench(t, line+c.flags).want(t, exit.Done, nil, nil)
		_, recs, _, err := record.Read(strings.Fields(c.flags)[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := auto(recs); got.Point != first.Point || got.Impl.Name != c.want {
			t.Errorf("%s: auto chose %s at %v, want %s at %v: %+v", c.flags, got.Impl.Name, got.Point, c.want, first.Point, got.Impl.Choice)
		}
	}
	rnnbench(t, "reproduce random-layers --resume named --budget 1ns --wisdom named.toml").want(t, exit.Done, nil, []string{"records missing"})
	rnnbench(t, "reproduce random-layers --from named").want(t, exit.Done, []string{"drawn from seed 6", "exact at 1"}, nil)
}

// TestReproduceWisdom: --wisdom is refused if no technique follows it, or if the file is missing.
func TestReproduceWisdom(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("book.toml", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "reproduce scan-rates --quick --dry-run --wisdom book.toml").want(t, exit.Usage, nil, []string{"scan-rates does not measure auto, so --wisdom has no effect: omit it", "hint: "})
	rnnbench(t, "reproduce random-layers --quick --dry-run --wisdom nowhere.toml").want(t, exit.Usage, nil, []string{"nowhere.toml"})
	rnnbench(t, "reproduce scan-rates --quick --rival nowhere.toml").want(t, exit.Usage, nil, nil)
}
