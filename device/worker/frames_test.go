package worker

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An idle device does nothing but check its arguments.
type idle struct{}

func (idle) Info() device.Info         { return device.Info{Name: "idle"} }
func (idle) Vocabulary() []knob.Knob   { return nil }
func (idle) Close() error              { return nil }
func (idle) Provoke(name string) error { return errors.New(name) }
func (idle) Knobs(s *schedule.Schedule) []knob.Knob {
	return []knob.Knob{{Name: "n", Values: []int{len(s.Nodes)}}}
}
func (idle) Memory(s *schedule.Schedule, _ knob.Params) (int64, error) { return s.Memory(), nil }
func (idle) Compile(s *schedule.Schedule, _ knob.Params) (device.Program, error) {
	return idleProgram{s}, nil
}

type idleProgram struct{ s *schedule.Schedule }

func (p idleProgram) Write(m *schedule.Matrix, src []float32) error { return p.fits(m, src) }
func (p idleProgram) Read(m *schedule.Matrix, dst []float32) error  { return p.fits(m, dst) }
func (p idleProgram) fits(m *schedule.Matrix, v []float32) error {
	if len(v) > m.Elements() {
		panic("more elements than the matrix has")
	}
	return nil
}
func (p idleProgram) Prepare() error { return nil }
func (p idleProgram) Start() error   { return nil }
func (p idleProgram) Wait() error    { return nil }
func (p idleProgram) Feed(values ...device.Filled) error {
	for _, v := range values {
		_ = p.fits(v.Matrix, v.Values)
	}
	return nil
}
func (p idleProgram) Kernels() []device.Kernel {
	return []device.Kernel{{Name: "idle", Launches: len(p.s.Nodes)}}
}
func (p idleProgram) Close() error { return nil }
func (p idleProgram) Run(n int) (device.Sample, error) {
	return device.Sample{Wall: 1}, nil
}

// requests encodes requests as the parent sends them.
func requests(t testing.TB, list ...request) []byte {
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	for _, q := range list {
		if err := enc.Encode(q); err != nil {
			t.Fatal(err)
		}
		if (q.Call == callWrite || q.Call == callFeed) && !q.Window && q.Size > 0 && q.Size < 1<<10 {
			b.Write(make([]byte, q.Size))
		}
	}
	return b.Bytes()
}

func oneMap(t testing.TB) []byte {
	b := schedule.NewBuilder(1)
	b.Do(0, schedule.Map{Op: cell.Zero, Out: b.Matrix("m", 2, 3).All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func serveIdle(in []byte) (out []byte, err error) {
	var b bytes.Buffer
	err = serve(bytes.NewReader(in), &b, func(string) (device.Device, error) { return idle{}, nil }, func() {})
	return b.Bytes(), err
}

// TestServeRefuses sends invalid calls to a worker. Each is answered with an error, or ends the
// worker with one.
func TestServeRefuses(t *testing.T) {
	open, compile := request{Call: callOpen}, request{Call: callCompile, Schedule: 1, Text: oneMap(t)}
	for name, list := range map[string][]request{
		"no device":          {{Call: callInfo}},
		"no schedule":        {open, {Call: callCompile}},
		"unknown schedule":   {open, {Call: callKnobs, Schedule: 7}},
		"no program":         {open, {Call: callRun, Program: 3}},
		"no matrix":          {open, compile, {Call: callRead, Program: 1, Matrix: 9, Size: 24}},
		"a negative size":    {open, compile, {Call: callRead, Program: 1, Size: -4}},
		"too large to read":  {open, compile, {Call: callRead, Program: 1, Size: 1 << 40}},
		"too large to write": {open, compile, {Call: callWrite, Program: 1, Size: 1 << 40}},
		"a negative write":   {open, compile, {Call: callWrite, Program: 1, Size: -4}},
		"no window":          {open, compile, {Call: callWrite, Program: 1, Size: 24, Window: true}},
		"fed no matrix":      {open, compile, {Call: callFeed, Program: 1, Size: 4, Fills: []fill{{9, 4}}}},
		"fed too much":       {open, compile, {Call: callFeed, Program: 1, Size: 28, Fills: []fill{{0, 28}}}},
		"fed more than came": {open, compile, {Call: callFeed, Program: 1, Size: 8, Fills: []fill{{0, 12}}}},
		"fed less than came": {open, compile, {Call: callFeed, Program: 1, Size: 8, Fills: []fill{{0, 4}}}},
		"fed half a value":   {open, compile, {Call: callFeed, Program: 1, Size: 4, Fills: []fill{{0, 3}}}},
		"fed less than none": {open, compile, {Call: callFeed, Program: 1, Size: 4, Fills: []fill{{0, -4}}}},
		"fed no window":      {open, compile, {Call: callFeed, Program: 1, Size: 4, Fills: []fill{{0, 4}}, Window: true}},
		"no runs":            {open, compile, {Call: callRun, Program: 1, Runs: -1}},
		"no call":            {open, compile, {Call: 99, Program: 1}},
		"not a schedule":     {open, {Call: callMemory, Schedule: 1, Text: []byte("x")}},
	} {
		out, err := serveIdle(requests(t, list...))
		if err == nil && !bytes.Contains(out, []byte("worker: ")) && !bytes.Contains(out, []byte("schedule: ")) {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzServe sends arbitrary bytes to a worker.
func FuzzServe(f *testing.F) {
	text := oneMap(f)
	f.Add(requests(f, request{Call: callOpen, Name: "cpu"}, request{Call: callCompile, Schedule: 1, Text: text, Knobs: knob.Params{"a": 1}},
		request{Call: callWrite, Program: 1, Size: 24}, request{Call: callRun, Program: 1, Runs: 2}, request{Call: callRead, Program: 1, Size: 24},
		request{Call: callFree, Program: 1}))
	f.Add(requests(f, request{Call: callOpen}, request{Call: callCompile, Schedule: 1, Text: text},
		request{Call: callFeed, Program: 1, Size: 36, Fills: []fill{{0, 24}, {0, 12}}}, request{Call: callStart, Program: 1}, request{Call: callWait, Program: 1}))
	f.Add(requests(f, request{Call: callOpen}, request{Call: callKnobs, Schedule: 2, Text: text, Forget: []int{2}}, request{Call: callLimits}))
	f.Fuzz(func(t *testing.T, in []byte) { _, _ = serveIdle(in) })
}

// parent returns a device whose worker writes answers.
func parent(answers []byte) *Device {
	p := &process{in: bufio.NewReader(bytes.NewReader(answers)), out: bufio.NewWriter(io.Discard)}
	p.enc, p.bounded.r = gob.NewEncoder(p.out), p.in
	p.dec = gob.NewDecoder(&p.bounded)
	return &Device{process: p}
}

// FuzzAnswers sends arbitrary bytes to the parent's end. It must accept them as answers or reject
// them, and never read more than a message may have.
func FuzzAnswers(f *testing.F) {
	out, err := serveIdle(requests(f, request{Call: callOpen}, request{Call: callCompile, Schedule: 1, Text: oneMap(f)}, request{Call: callRun, Program: 1, Runs: 1}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(out)
	f.Add([]byte(greeting))
	f.Add([]byte(strings.Repeat("x", 100)))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := parent(in)
		if line, err := d.process.greeting(); err == nil && len(line) > len(greeting) {
			t.Errorf("a greeting of %d bytes", len(line))
		}
		for range 10 {
			var r response
			if d.process.receive(&r) != nil {
				return
			}
			_ = r.err()
		}
	})
}
