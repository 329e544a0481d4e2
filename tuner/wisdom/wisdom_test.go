package wisdom

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

func point(hidden, batch int) record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Batch: batch, Steps: 50, Layers: 1, Precision: "fp32"}
}

func fact(p record.Point, seconds float64) Entry {
	return Entry{
		Device: "cpu-x-2t", Cache: "hot", Point: p, Impl: "cudnnstyle", Knobs: map[string]int{"fused": 1, "teams": 0}, Seconds: seconds,
		RunnerUp: "persistent:transposed=2", Lead: 0.04, Tried: 40, Complete: true, Tool: "v1", Libraries: map[string]string{"simd": "avx512"},
		Run: "20261121T000000Z-cpu-ab12", Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", File)
	empty, err := Read(path)
	if err != nil || len(empty.Entries) != 0 {
		t.Fatalf("a file that is not there: %v, %v", empty, err)
	}
	b := &Book{}
	b.Put(fact(point(512, 4), 2e-3))
	b.Put(fact(point(64, 4), 1e-3))
	better := fact(point(512, 4), 1.5e-3)
	b.Put(better)
	turned := point(512, 4)
	turned.Direction = "both"
	b.Put(fact(turned, 3e-3))
	narrow := point(512, 4)
	narrow.Projection = 256
	b.Put(fact(narrow, 4e-3))
	anew := point(512, 4)
	anew.Resets = 3
	b.Put(fact(anew, 5e-3))
	if err := b.Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := Read(path)
	if err != nil || len(back.Entries) != 5 {
		t.Fatalf("%d entries, %v", len(back.Entries), err)
	}
	if back.Entries[0].Point.Hidden != 64 || !reflect.DeepEqual(back.Entries[1], better) {
		t.Errorf("read %+v", back.Entries)
	}
	if found := back.Lookup("cpu-x-2t", "hot", turned); len(found) != 1 || found[0].Seconds != 3e-3 {
		t.Errorf("both ways: %+v", found)
	}
	if found := back.Lookup("cpu-x-2t", "hot", narrow); len(found) != 1 || found[0].Seconds != 4e-3 {
		t.Errorf("a projection: %+v", found)
	}
	if found := back.Lookup("cpu-x-2t", "hot", anew); len(found) != 1 || found[0].Seconds != 5e-3 {
		t.Errorf("resets: %+v", found)
	}
	again, err := back.Format()
	if text, _ := os.ReadFile(path); err != nil || string(text) != string(again) {
		t.Errorf("not the same text again: %v\n%s", err, again)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestAxes: a file keeps the value of every axis.
func TestAxes(t *testing.T) {
	b := &Book{}
	for _, a := range axis.All() {
		p := point(512, 4)
		switch words := a.Values(); {
		case a.Sized():
			a.Set(&p, 3)
		case words != nil:
			a.Set(&p, words[len(words)-1])
		default:
			a.Set(&p, "gru")
		}
		b.Put(fact(p, 1e-3))
	}
	if len(b.Entries) != len(axis.All()) {
		t.Fatalf("%d entries", len(b.Entries))
	}
	text, err := b.Format()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, "book")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, e := range b.Entries {
		if found := back.on(&e); found == nil || !reflect.DeepEqual(*found, e) {
			t.Errorf("%v became %v", e.Point, found)
		}
	}
}

// TestObjectives: the fastest and the least energy at a point are two entries. A lookup for one never
// finds the other.
func TestObjectives(t *testing.T) {
	thrifty := fact(point(64, 4), 2e-3)
	thrifty.Objective, thrifty.Joules, thrifty.Impl = record.OfEnergy, 0.25, "naive"
	b := &Book{}
	b.Put(thrifty)
	if m := b.Lookup("cpu-x-2t", "hot", point(64, 4)); m != nil {
		t.Errorf("energy answers for time: %+v", m)
	}
	b.Put(fact(point(64, 4), 1e-3))
	text, err := b.Format()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, "book")
	if err != nil || len(back.Entries) != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	if m := back.LookupFor(record.OfEnergy, "cpu-x-2t", "hot", point(64, 4)); len(m) != 1 || !reflect.DeepEqual(m[0].Entry, thrifty) {
		t.Errorf("%+v", m)
	}
	if m := back.Lookup("cpu-x-2t", "hot", point(64, 8)); len(m) != 1 || m[0].Impl != "cudnnstyle" {
		t.Errorf("%+v", m)
	}
	for change, want := range map[string]string{"objective = 'joules'": `objective is "joules"`, "objective = ''": "joules must be above 0 where"} {
		bad := strings.Replace(string(text), "objective = 'energy'", change, 1)
		if _, err := Parse([]byte(bad), "book"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	good, err := (&Book{Entries: []Entry{fact(point(64, 1), 1)}}).Format()
	if err != nil {
		t.Fatal(err)
	}
	second := strings.TrimPrefix(string(good), "schema = 'rnnbench.wisdom/1'\n")
	for _, c := range []struct{ text, message string }{
		{"", `schema is "", not "rnnbench.wisdom/1"`},
		{"schema = 'rnnbench.wisdom/2'", `schema is "rnnbench.wisdom/2"`},
		{"{}", "book:1:1:"},
		{strings.Replace(string(good), "impl =", "imple =", 1), `unknown key "entry.imple"`},
		{strings.Replace(string(good), "hidden = 64", "hidden = 0", 1), "entry 1: a size is out of range"},
		{strings.Replace(string(good), "impl =", "heads = -1\nimpl =", 1), "entry 1: a size is out of range"},
		{strings.Replace(string(good), "impl =", "projection = -1\nimpl =", 1), "entry 1: a size is out of range"},
		{strings.Replace(string(good), "impl =", "resets = -1\nimpl =", 1), "entry 1: a size is out of range"},
		{strings.Replace(string(good), "hidden = 64", "hidden = 'x'", 1), "book:"},
		{strings.Replace(string(good), "seconds = 1.0", "seconds = nan", 1), "entry 1: seconds or lead is out of range"},
		{strings.Replace(string(good), "impl =", "direction = 'up'\nimpl =", 1), `"up" is not a direction`},
		{strings.Replace(string(good), "impl =", "lengths = 'half of them'\nimpl =", 1), `"half of them" are not lengths`},
		{strings.Replace(string(good), "cache = 'hot'", "cache = 'warm'", 1), `cache is "warm"`},
		{string(good) + second, "entry 2 has the same point as an earlier entry"},
	} {
		_, err := Parse([]byte(c.text), "book")
		if err == nil || !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "wisdom: book") {
			t.Errorf("%.60q: error %v, want %s", c.text, err, c.message)
		}
	}
}

func TestLookup(t *testing.T) {
	b := &Book{Entries: []Entry{fact(point(64, 1), 1), fact(point(256, 1), 2), fact(point(256, 4), 3)}}
	other := fact(point(128, 1), 4)
	other.Device = "cuda-y"
	b.Put(other)
	for _, c := range []struct {
		hidden, batch int
		want          string
		seconds       float64
	}{
		{256, 4, Exact, 3}, {128, 1, Nearest, 1}, {200, 1, Nearest, 2}, {512, 4, Nearest, 3}, {512, 8, Nearest, 3}, {1024, 64, "", 0},
	} {
		found := b.Lookup("cpu-x-2t", "hot", point(c.hidden, c.batch))
		if len(found) == 0 {
			if c.want != "" {
				t.Errorf("H=%d B=%d: nothing", c.hidden, c.batch)
			}
			continue
		}
		if m := found[0]; m.Kind != c.want || m.Seconds != c.seconds {
			t.Errorf("H=%d B=%d: %s of %v (%.2f octaves), want %s", c.hidden, c.batch, m.Kind, m.Point, m.Distance, c.want)
		}
	}
	for what, spoil := range map[string]func(p *record.Point){
		"cell": func(p *record.Point) { p.Cell = "gru" }, "pass": func(p *record.Point) { p.Pass = "train" },
		"precision": func(p *record.Point) { p.Precision = "bf16" }, "output": func(p *record.Point) { p.Output = 10 },
	} {
		p := point(64, 1)
		spoil(&p)
		if found := b.Lookup("cpu-x-2t", "hot", p); len(found) > 0 {
			t.Errorf("another %s matches", what)
		}
	}
	if found := b.Lookup("cpu-x-2t", "cold", point(64, 1)); len(found) > 0 {
		t.Error("another cache matches")
	}
}

func TestMergeTakesTheNewer(t *testing.T) {
	old, late := fact(point(64, 1), 1), fact(point(64, 1), 2)
	late.Time = late.Time.Add(time.Hour)
	for _, c := range []struct {
		mine, theirs    Entry
		taken, replaced int
	}{{old, late, 2, 1}, {late, old, 1, 0}} {
		b := &Book{Entries: []Entry{c.mine}}
		taken, replaced := b.Merge(&Book{Entries: []Entry{c.theirs, fact(point(32, 1), 3)}})
		if taken != c.taken || replaced != c.replaced || len(b.Entries) != 2 || b.Entries[0].Seconds != 2 {
			t.Errorf("%d taken, %d replaced, %+v", taken, replaced, b.Entries)
		}
	}
}

func TestStale(t *testing.T) {
	e := fact(point(64, 1), 1)
	if s := e.Stale("v1", map[string]string{"simd": "avx512"}); s != nil {
		t.Errorf("stale: %v", s)
	}
	got := strings.Join(e.Stale("v2", map[string]string{"simd": "avx2", "driver": "560"}), "; ")
	if want := "rnnbench v1, now v2; driver none, now 560; simd avx512, now avx2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	good, err := (&Book{Entries: []Entry{fact(point(64, 1), 1), fact(point(32, 8), 1e-6)}}).Format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("schema = 'rnnbench.wisdom/1'\n[[entry]]\n"))
	f.Add([]byte("schema = 7"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Parse(data, "book")
		if err != nil {
			return
		}
		text, err := b.Format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text, "book")
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if len(again.Entries) != len(b.Entries) {
			t.Fatalf("%d entries, then %d", len(b.Entries), len(again.Entries))
		}
		for _, e := range b.Entries {
			b.Lookup(e.Device, e.Cache, e.Point)
		}
	})
}

// TestUpdatesAtATime: concurrent updates of a book do not undo each other, and leave no files behind.
func TestUpdatesAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	const writers, each = 8, 4
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				_, err := Update(path, func(b *Book) bool { b.Put(fact(point(1+w, 1+i), 1)); return true })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if b, err := Read(path); err != nil || len(b.Entries) != writers*each {
		t.Errorf("%d entries, %v; want %d", len(b.Entries), err, writers*each)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
	if _, err := Update(path, func(b *Book) bool { b.Entries = nil; return false }); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(path); err != nil || len(b.Entries) != writers*each {
		t.Errorf("%d entries, %v: nothing was to be written", len(b.Entries), err)
	}
}

// TestKeepsWhatOthersWrote: entries that others wrote meanwhile stay, unless they are older and of the
// same point. Entries that were there before are replaced, whatever their time.
func TestKeepsWhatOthersWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	at := func(hidden int, hours time.Duration) Entry {
		e := fact(point(hidden, 1), 1)
		e.Time = e.Time.Add(hours * time.Hour)
		return e
	}
	mine := &Book{Entries: []Entry{at(1, 9)}}
	theirs := &Book{Entries: []Entry{at(1, 9), at(2, 1), at(3, 9), at(4, 1)}}
	if err := theirs.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := mine.Keep(path, at(1, 5), at(2, 5), at(3, 5), at(5, 5)); err != nil {
		t.Fatal(err)
	}
	want := &Book{Entries: []Entry{at(1, 5), at(2, 5), at(3, 9), at(4, 1), at(5, 5)}}
	b, err := Read(path)
	if err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("%+v, %v", b, err)
	}
	if len(mine.Entries) != len(want.Entries) {
		t.Errorf("the book is %+v", mine)
	}
}

// TestPointIsKept writes a point whose fields all differ and reads it back.
func TestPointIsKept(t *testing.T) {
	e := fact(point(64, 1), 1)
	v := reflect.ValueOf(&e.Point).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(int64(i + 2))
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	text, err := (&Book{Entries: []Entry{e}}).Format()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, "book")
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Entries[0].Point; got != e.Point {
		t.Errorf("%+v is %+v once it is read back", e.Point, got)
	}
}
