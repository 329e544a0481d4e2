package data_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/train/data"
)

// encode encodes a recording as N-MNIST stores it.
func encode(events []data.Event) []byte {
	var out []byte
	for _, e := range events {
		low := e.Time
		if e.On {
			low |= 1 << 23
		}
		out = append(out, e.X, e.Y, byte(low>>16), byte(low>>8), byte(low))
	}
	return out
}

// events makes n events, each of which tells its place in the recording.
func events(n, digit int) []data.Event {
	all := make([]data.Event, n)
	for i := range all {
		all[i] = data.Event{X: uint8(i % 34), Y: uint8((i/34 + 10*digit) % 34), On: digit%2 == 1, Time: uint32(100 * i)}
	}
	return all
}

// nmnist is a folder like N-MNIST's, with so many recordings of each of two digits.
func nmnist(t *testing.T, each int) string {
	dir := t.TempDir()
	for i, part := range []string{"Train", "Test"} {
		for digit := range 2 {
			folder := filepath.Join(dir, part, fmt.Sprint(digit))
			if err := os.MkdirAll(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			for k := range each {
				file := filepath.Join(folder, fmt.Sprintf("%05d.bin", k+1))
				if err := os.WriteFile(file, encode(events(300+20*k, digit+2*i)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return dir
}

// TestForecast: a target is the event so far ahead of the present one. Nothing is asked for during
// the burn-in or after the recording's end.
func TestForecast(t *testing.T) {
	dir := nmnist(t, 1)
	const pixels = 34 * 34
	for _, test := range []struct{ steps, ahead, burnin int }{{40, 50, 0}, {40, 7, 13}, {280, 50, 5}, {400, 50, 0}} {
		o := data.Options{Batch: 3, Steps: test.steps, Seed: 2}
		m := next(open(t, fmt.Sprintf("n-mnist:%s:ahead=%d:burnin=%d", dir, test.ahead, test.burnin), o), o)
		for b := range o.Batch {
			// Pixels go up by one from event to event, of one polarity.
			rises := m.x[2*b+1]
			digit := int(rises+1) / 2
			place := func(pixel int) int { return (pixel - 340*digit + pixels) % pixels }
			start := place(int(m.x[2*b]))
			for step := range o.Steps {
				row := 2 * (step*o.Batch + b)
				pixel, polarity, target := int(m.x[row]), m.x[row+1], int(m.target[step*o.Batch+b])
				if i := start + step; i < 300 != (pixel != pixels && polarity == rises) || i >= 300 && polarity != 0 || pixel != pixels && place(pixel) != i {
					t.Fatalf("%+v: step %d of sequence %d is pixel %d with polarity %v", test, step, b, pixel, polarity)
				}
				i := start + step + test.ahead
				asked := i < 300 && step >= test.burnin
				if asked != (target >= 0) || asked && (place(target%pixels) != i || target/pixels != digit) {
					t.Fatalf("%+v: step %d of sequence %d asks for %d", test, step, b, target)
				}
			}
		}
	}
}

// TestCamera: the camera emits about as many events as N-MNIST has, of both polarities, near the middle, and
// two recordings differ.
func TestCamera(t *testing.T) {
	o := data.Options{Batch: 12, Steps: 1024, Seed: 4}
	m := next(open(t, "events:recordings=12", o), o)
	var count [34*34 + 1]int
	on, border := 0, 0
	for i := 0; i < len(m.x); i += 2 {
		pixel := int(m.x[i])
		count[pixel]++
		if m.x[i+1] > 0 {
			on++
		}
		if x := pixel % 34; pixel < 34*34 && (x < 2 || x >= 32) {
			border++
		}
	}
	total := o.Batch * o.Steps
	if on < total/4 || on > 3*total/4 || border > total/20 || count[34*34] > total/20 {
		t.Errorf("of %d events %d are rises, %d are at the border, and %d are missing", total, on, border, count[34*34])
	}
	if busiest := slices.Max(count[:]); busiest > total/50 {
		t.Errorf("one symbol has %d of %d events", busiest, total)
	}
}

// TestHeldOutRecordings: held-out recordings, and those of another seed, are others. A sequence
// longer than the only recording begins with its first event.
func TestHeldOutRecordings(t *testing.T) {
	o := data.Options{Batch: 1, Steps: 6000, Seed: 4}
	held, other := o, o
	held.Held, other.Seed = true, 5
	const spec = "events:recordings=1"
	trained := next(open(t, spec, o), o)
	for _, o := range []data.Options{held, other} {
		if slices.Equal(next(open(t, spec, o), o).x, trained.x) {
			t.Errorf("%+v has the recording that is trained on", o)
		}
	}
	s := open(t, spec, o)
	if next(s, o); !next(s, o).equal(trained) {
		t.Error("the second minibatch has another recording, or not all of it")
	}
}

// TestBrokenRecordings: a missing or broken recording gives one sentence that names the file.
func TestBrokenRecordings(t *testing.T) {
	for want, content := range map[string]string{
		"is empty": "", "each event takes 5": "1234567", "pixel (34, 0)": "\x01\x01\x80\x00\x00\x22\x00\x00\x00\x00",
		"has no events": "\x00\xf0\x00\x00\x00",
	} {
		dir := nmnist(t, 2)
		path := filepath.Join(dir, "Train", "1", "00002.bin")
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := data.Open("n-mnist:burnin=0:dir="+dir, data.Options{Batch: 1, Steps: 4})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %q and the file's name", content, err, want)
		}
		if _, err := data.Open("n-mnist:burnin=0:recordings=3:dir="+dir, data.Options{Batch: 1, Steps: 4}); err != nil {
			t.Errorf("the fourth recording is read: %v", err)
		}
	}
	empty := t.TempDir()
	if _, err := data.Open("n-mnist:"+empty, data.Options{Batch: 1, Steps: 4}); err == nil || !strings.Contains(err.Error(), "Train and Test") {
		t.Errorf("without folders: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(empty, "Train", "0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Open("n-mnist:"+empty, data.Options{Batch: 1, Steps: 4}); err == nil || !strings.Contains(err.Error(), "00001.bin") {
		t.Errorf("without files: %v", err)
	}
}

// TestParseEvents: fields are where Orchard et al. have them. An overflow of the time adds to all
// later events.
func TestParseEvents(t *testing.T) {
	got, err := data.ParseEvents([]byte{3, 33, 0x81, 2, 3, 0, 240, 0, 0, 0, 33, 0, 0x7f, 0xff, 0xff})
	want := []data.Event{{X: 3, Y: 33, On: true, Time: 0x10203}, {X: 33, Y: 0, Time: 0x7fffff + 8192}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// FuzzParseEvents: any file is an error or events in range, no more than it has room for. They are
// the same when encoded again.
func FuzzParseEvents(f *testing.F) {
	f.Add(encode(events(3, 1)))
	f.Add([]byte{0, 240, 0, 0, 0, 1, 2, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := data.ParseEvents(file)
		if err != nil {
			return
		}
		if len(got) == 0 || len(got) > len(file)/5 {
			t.Fatalf("%d events in %d bytes", len(got), len(file))
		}
		for i, e := range got {
			if e.X >= 34 || e.Y >= 34 {
				t.Fatalf("event %d is %+v", i, e)
			}
			if e.Time >= 1<<23 {
				return
			}
		}
		if again, err := data.ParseEvents(encode(got)); err != nil || !slices.Equal(again, got) {
			t.Fatalf("encoded again, %v are %v: %v", got, again, err)
		}
	})
}

func BenchmarkCamera(b *testing.B) {
	o := data.Options{Batch: 1, Steps: 1024}
	for i := range b.N {
		o.Seed = uint64(i)
		s, err := data.Open("events:recordings=1", o)
		if err != nil {
			b.Fatal(err)
		}
		next(s, o)
	}
}
