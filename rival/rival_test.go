package rival_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// options are those of a stranger that does something wrong. Requests that will hang get a short
// timeout. The others get more, since a machine may be busy, and for a start.
func options(t *testing.T, how string) rival.Options {
	t.Helper()
	t.Setenv(asRival, how)
	o := rival.Options{Name: "stranger", Command: []string{os.Args[0]}, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 1}}
	if strings.HasPrefix(how, "hang") {
		o.Timeout = time.Second
	}
	if how == "hang hello" {
		o.Start = time.Second
	}
	return o
}

func open(t *testing.T, how string) *rival.Rival {
	t.Helper()
	return opened(t, options(t, how))
}

func opened(t *testing.T, o rival.Options) *rival.Rival {
	t.Helper()
	r, err := rival.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func problem(c *cell.Cell, pass rnn.Pass) rnn.Problem {
	return rnn.Problem{Cell: c, Input: 3, Hidden: 5, Layers: 2, Batch: 2, Steps: 4, Pass: pass}
}

// compute has a rival compute p, and compares the answer with the reference's.
func compute(r *rival.Rival, p rnn.Problem, k knob.Params) (dev oracle.Deviation, err error) {
	plan, s, err := rnn.Layout(r, p, k)
	if err != nil {
		return dev, err
	}
	if _, err := r.Host().Memory(s, nil); err != nil {
		return dev, err
	}
	prog, err := r.Host().Compile(s, nil)
	if err != nil {
		return dev, err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	d := rnn.NewData(p, seed, p.Batch, "normal")
	if err := errors.Join(plan.Write(prog, d), prog.Prepare()); err != nil {
		return dev, err
	}
	if _, err = prog.Run(3); err != nil {
		return dev, err
	}
	dev, _, err = oracle.Check(plan, prog, oracle.Reference(d))
	if err != nil || dev.OK() || !rnn.Kinked(p) {
		return dev, err
	}
	got, err := oracle.Read(plan, prog)
	if err == nil { // at a kink either gradient is right
		dev, _, err = oracle.CompareAgain(d, got)
	}
	return dev, err
}

// TestHonest: every cell and pass goes to a rival, and comes back under the names of export.
func TestHonest(t *testing.T) {
	r := open(t, "honest")
	if r.Version() != "1.0" || r.Name() != "stranger" {
		t.Errorf("it is %s %s", r.Name(), r.Version())
	}
	for _, c := range cell.All() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := problem(c, pass)
			dev, err := compute(r, p, nil)
			if err != nil || !dev.OK() {
				t.Errorf("%v: %v, %v", p, dev, err)
			}
		}
	}
	if dev, err := compute(r, problem(cell.LSTM, rnn.Forward), knob.Params{"off": 1}); err != nil || dev.OK() {
		t.Errorf("a knob that spoils the answer: %v, %v", dev, err)
	}
}

// TestDirections: every direction that a rival states goes to it and comes back. Parameters and
// states of each way have their names, and both ways' outputs lie side by side.
func TestDirections(t *testing.T) {
	r := open(t, "honest")
	for i, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating} {
		for _, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := problem(c, pass)
				p.Direction, p.Layers = direction, 1+i
				if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
					t.Errorf("%v: %v, %v", p, dev, err)
				}
			}
		}
	}
}

// TestLengths: sequences with lengths of their own go to a rival packed, the longest first, and
// come back so. Last states are those after each sequence's own last step.
func TestLengths(t *testing.T) {
	r := open(t, "honest")
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole, cell.RNNReLU} {
		for j, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := problem(c, pass)
			p.Direction, p.Layers = rnn.Direction((i+j)%4), 1+i%2
			p.Batch, p.Steps, p.Lengths = 7, 5, "2*1+3+2*4+2*5"
			if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
				t.Errorf("%v: %v, %v", p, dev, err)
			}
		}
	}
	p := problem(cell.LSTM, rnn.Forward)
	p.Lengths = "2+4"
	if dev, err := compute(r, p, knob.Params{"off": 1}); err != nil || dev.OK() {
		t.Errorf("a knob that spoils the answer: %v, %v", dev, err)
	}
	if _, err := compute(open(t, "forward hello"), p, nil); !errors.Is(err, schedule.ErrLengths) || !strings.Contains(err.Error(), "stranger runs all steps of all sequences, but lengths are 2+4: set lengths to full") {
		t.Errorf("a rival that states no lengths: %v", err)
	}
}

// TestProjection: a layer's projection, its gradient and the narrower states go to a rival and come
// back, one state wider than the other. A rival that does not offer it is not asked.
func TestProjection(t *testing.T) {
	r := open(t, "honest")
	for i, c := range []*cell.Cell{cell.LSTM, cell.LSTMPeephole, cell.SLSTM} {
		for _, direction := range []rnn.Direction{rnn.FromFirst, rnn.FromLast, rnn.BothWays, rnn.Alternating} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := problem(c, pass)
				p.Direction, p.Layers, p.Projection = direction, 1+(i+int(direction))%3, 1+i
				if i == 2 {
					p.Batch, p.Steps, p.Lengths = 7, 5, "2*1+3+2*4+2*5"
				}
				if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
					t.Errorf("%v: %v, %v", p, dev, err)
				}
			}
		}
	}
	p := problem(cell.LSTM, rnn.Train)
	p.Projection, p.Steps = 2, 1
	if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
		t.Errorf("%v: %v, %v", p, dev, err)
	}
	if dev, err := compute(r, p, knob.Params{"off": 1}); err != nil || dev.OK() {
		t.Errorf("a knob that spoils the answer: %v, %v", dev, err)
	}
	if _, err := compute(open(t, "unprojected hello"), p, nil); !errors.Is(err, schedule.ErrProjection) || !strings.Contains(err.Error(), "stranger offers no projection of the outputs of layers, but projection is 2: set projection to none") {
		t.Errorf("a rival that offers no projection: %v", err)
	}
}

// TestResets: the steps at which sequences begin anew go to a rival, for layers of every direction. A
// rival that does not offer them is not asked.
func TestResets(t *testing.T) {
	r := open(t, "honest")
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole, cell.RNNTanh} {
		for j, percent := range []int{1, 30, 100} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				p := problem(c, pass)
				p.Direction, p.Layers = rnn.Direction((i+j)%4), 1+i%2
				p.Batch, p.Steps, p.Resets = 6, 7, percent
				if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
					t.Errorf("%v: %v, %v", p, dev, err)
				}
			}
		}
	}
	p := problem(cell.LSTM, rnn.Forward)
	p.Resets = 25
	if dev, err := compute(r, p, knob.Params{"off": 1}); err != nil || dev.OK() {
		t.Errorf("a knob that spoils the answer: %v, %v", dev, err)
	}
	if _, err := compute(open(t, "forward hello"), p, nil); !errors.Is(err, schedule.ErrResets) || !strings.Contains(err.Error(), "stranger begins no sequence anew within a run, but resets are 25%: set resets to none") {
		t.Errorf("a rival that offers no resets: %v", err)
	}
}

// TestHeads: recurrent weights of heads go to a rival and their gradients come back. A rival that does
// not offer heads is not asked.
func TestHeads(t *testing.T) {
	r := open(t, "honest")
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.SLSTM} {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := problem(c, pass)
			p.Hidden, p.Heads, p.Direction = 12, 2+i, rnn.Direction(i)
			if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
				t.Errorf("%v: %v, %v", p, dev, err)
			}
		}
	}
	p := problem(cell.LSTM, rnn.Forward)
	p.Hidden, p.Heads = 6, 3
	if dev, err := compute(r, p, knob.Params{"off": 1}); err != nil || dev.OK() {
		t.Errorf("a knob that spoils the answer: %v, %v", dev, err)
	}
	if _, err := compute(open(t, "forward hello"), p, nil); !errors.Is(err, schedule.ErrHeads) || !strings.Contains(err.Error(), "stranger takes full recurrent weights, not those of heads: set heads to none") {
		t.Errorf("a rival that offers no heads: %v", err)
	}
}

// TestNorm: gains and their gradients go to a rival and come back. A rival that offers no norm, as all
// did before there was one, is not asked.
func TestNorm(t *testing.T) {
	r := open(t, "honest")
	for i, c := range []*cell.Cell{cell.LSTM.Norm(), cell.GRU, cell.RNNTanh} {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p := problem(c, pass)
			p.Norm, p.Direction = rnn.NormLayer, rnn.Direction(i)
			if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
				t.Errorf("%v: %v, %v", p, dev, err)
			}
			if dev, err := compute(r, p, knob.Params{"off": 1}); err != nil || dev.OK() {
				t.Errorf("%v: a knob that spoils the answer: %v, %v", p, dev, err)
			}
		}
	}
	p := problem(cell.LSTM.Norm(), rnn.Train)
	p.Norm = rnn.NormLayer
	if _, err := compute(open(t, "unprojected hello"), p, nil); !errors.Is(err, schedule.ErrNorm) || !strings.Contains(err.Error(), "stranger offers no layers with norm=layer: set norm to none") {
		t.Errorf("a rival that offers no norm: %v", err)
	}
}

// TestUnitError: a rival may state the error of its functions on a device, within bounds, and the plan says so.
func TestUnitError(t *testing.T) {
	for how, want := range map[string]float64{"honest": 0, "approximate hello": 7.6e-6} {
		plan, _, err := rnn.Layout(open(t, how), problem(cell.LSTM, rnn.Forward), nil)
		if err != nil || plan.UnitError != want {
			t.Errorf("%s: %v, %v", how, plan, err)
		}
	}
	if _, err := rival.Open(options(t, "sloppy hello")); err == nil || !strings.Contains(err.Error(), "its unit_error is 0.1: it must be 0 to 1e-05") {
		t.Errorf("a rival with wrong functions: %v", err)
	}
}

// TestStrangers: whatever a rival does, it costs only the point, is reported, and ends in time.
func TestStrangers(t *testing.T) {
	for _, c := range []struct {
		how, want string
		cause     error
	}{
		{"hang prepare", "stranger did not answer prepare within ", device.ErrHang},
		{"hang run", "stranger did not answer run within ", device.ErrHang},
		{"hang read", "it printed: still thinking", device.ErrHang},
		{"crash prepare", `stranger ended during prepare (exit status 7); it printed: first line Segmentation fault \x1b[31m`, device.ErrFault},
		{"crash run", "stranger ended during run (exit status 7)", device.ErrFault},
		{"crash read", "stranger ended during read", device.ErrFault},
		{"linger run", "stranger ended during run (exit status 7)", device.ErrFault},
		{"garbage prepare", `invalid answer to prepare and was killed: "Loading libraries …": it is no JSON object`, device.ErrFault},
		{"garbage run", "invalid answer to run", device.ErrFault},
		{"list run", "it is no JSON object", device.ErrFault},
		{"types run", "it is no JSON that the protocol knows", device.ErrFault},
		{"empty prepare", "it has neither ok nor unsupported", device.ErrFault},
		{"empty run", "it has no wall_s", device.ErrFault},
		{"empty read", "its answer to read has no ok", device.ErrFault},
		{"flood run", "answered run with more than 65536 bytes", device.ErrFault},
		{"endless run", "answered run with more than 65536 bytes", device.ErrFault},
		{"twice run", "sent a line that nobody asked for", device.ErrFault},
		{"error run", "stranger failed during run: no kernel for this", device.ErrFault},
		{"error prepare", "stranger failed during prepare: no kernel for this", device.ErrFault},
		{"unsupported prepare", "no such layers here", schedule.ErrUnsupported},
		{"unsupported run", "no such layers here", schedule.ErrUnsupported},
		{"late run", "it says that the runs took 1e+09 s", device.ErrFault},
		{"early run", "it says that the runs took 1e-06 s, but the answer came only after", device.ErrFault},
		{"negative run", "its times are not positive", device.ErrFault},
		{"shape", "array output: its shape is (40), not (4, 2, 5)", device.ErrFault},
		{"missing", "there is no array output", device.ErrFault},
		{"nofile", "it wrote no file", device.ErrFault},
		{"folder", "is no file", device.ErrFault},
		{"huge", "more than the", device.ErrFault},
		{"nozip", "it is no .npz file", device.ErrFault},
	} {
		t.Run(c.how, func(t *testing.T) {
			if testing.Short() && c.how == "hang prepare" {
				t.Skip("preparing may take long")
			}
			o := options(t, c.how)
			_, err := compute(opened(t, o), problem(cell.GRU, rnn.Forward), nil)
			for o.Timeout > 0 && o.Timeout < time.Minute && err != nil && !strings.Contains(err.Error(), c.want) {
				o.Timeout *= 4 // a busy machine came to the limit before the request that hangs
				_, err = compute(opened(t, o), problem(cell.GRU, rnn.Forward), nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.cause) {
				t.Errorf("%v, want %q and %v", err, c.want, c.cause)
			}
		})
	}
	for _, how := range []string{"wrong", "nan"} {
		if dev, err := compute(open(t, how), problem(cell.GRU, rnn.Forward), nil); err != nil || dev.OK() {
			t.Errorf("%s: %v, %v", how, dev, err)
		}
	}
}

// TestSpent: a process that declines a point and can do nothing more is not asked again.
func TestSpent(t *testing.T) {
	r := open(t, "spent prepare")
	for range 2 {
		if _, err := compute(r, problem(cell.GRU, rnn.Forward), nil); !errors.Is(err, schedule.ErrUnsupported) {
			t.Errorf("%v, want that it is unsupported", err)
		}
	}
}

// TestHeirs: a rival whose child holds its pipes does not block the program.
func TestHeirs(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("there is no sleep here")
	}
	start := time.Now()
	_, err := compute(open(t, "heir run"), problem(cell.GRU, rnn.Forward), nil)
	if !errors.Is(err, device.ErrHang) && !errors.Is(err, device.ErrFault) || time.Since(start) > 4*time.Minute {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// TestFirstAnswers: a rival that cannot say what it does is no technique, and says why.
func TestFirstAnswers(t *testing.T) {
	for how, want := range map[string]string{
		"hang hello":        "did not answer hello within",
		"crash hello":       "ended during hello (exit status 7); it printed: first line Segmentation fault",
		"garbage hello":     "invalid answer to hello",
		"crash open":        "ended during open",
		"unsupported hello": "stranger: no such layers here",
		"unsupported open":  "cannot open cpu: no such layers here",
		"sideways hello":    `invalid answer to hello: direction "sideways" must be one of forward, reverse, both, alternate, once`,
		"error open":        "failed during open: no kernel for this",
	} {
		if r, err := rival.Open(options(t, how)); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, device.ErrStart) {
			t.Errorf("%s: %v, %v, want %q", how, r, err, want)
		}
	}
	o := options(t, "honest")
	o.Command = []string{filepath.Join(t.TempDir(), "nobody")}
	if _, err := rival.Open(o); err == nil || !errors.Is(err, device.ErrStart) {
		t.Errorf("a command that is not there: %v", err)
	}
}

// TestDeclines: what a rival cannot do is declined before anything is sent.
func TestDeclines(t *testing.T) {
	r := open(t, "honest")
	hot, head, half, both := problem(cell.LSTM, rnn.Forward), problem(cell.LSTM, rnn.Forward), problem(cell.LSTM, rnn.Forward), problem(cell.LSTM, rnn.Forward)
	hot.OneHot, head.Output, half.Precision, both.Direction = true, 7, rnn.FP16, rnn.BothWays
	for _, c := range []struct {
		p     rnn.Problem
		cause error
	}{{hot, schedule.ErrInput}, {head, schedule.ErrUnsupported}, {half, schedule.ErrPrecision}} {
		if _, err := compute(r, c.p, nil); !errors.Is(err, c.cause) {
			t.Errorf("%v: %v", c.p, err)
		}
	}
	if _, err := compute(open(t, "forward hello"), both, nil); !errors.Is(err, schedule.ErrDirection) || !strings.Contains(err.Error(), "runs layers in direction forward, not both") {
		t.Errorf("a rival that states no directions: %v", err)
	}
	o := options(t, "honest")
	o.Devices = []string{"cuda"}
	elsewhere, err := rival.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if _, err := compute(elsewhere, problem(cell.LSTM, rnn.Forward), nil); !errors.Is(err, schedule.ErrDevice) {
		t.Errorf("a rival of other devices: %v", err)
	}
}

// TestEndedIdle: a process that ended between two points costs neither of them.
func TestEndedIdle(t *testing.T) {
	r := open(t, "honest")
	p := problem(cell.GRU, rnn.Forward)
	if _, err := compute(r, p, nil); err != nil {
		t.Fatal(err)
	}
	rival.KillIdle(r)
	if dev, err := compute(r, p, nil); err != nil || !dev.OK() {
		t.Errorf("%v, %v", dev, err)
	}
}

// TestSweep: rivals are verified and measured among techniques. One that breaks costs only its own
// points.
func TestSweep(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for how, want := range map[string][2]string{ // status and reason of the rival's points
		"honest":              {"ok", ""},
		"crash run":           {"failed", record.ReasonRival},
		"hang run":            {"timeout", record.ReasonHang},
		"wrong":               {"incorrect", record.ReasonMismatch},
		"nan":                 {"incorrect", record.ReasonMismatch},
		"unsupported prepare": {"skipped", record.ReasonLibrary},
	} {
		r := open(t, how)
		m := config.Default()
		m.Rounds, m.MaxRounds, m.Warmup, m.MinTime, m.Seed = 3, 3, 0, time.Millisecond, seed
		var recs []record.Record
		s := tuner.Sweep{Device: d, Techniques: append(impl.All(), r), Settings: m, Emit: func(rec *record.Record) error {
			recs = append(recs, *rec)
			return nil
		}}
		p := record.Point{Cell: "gru", Pass: "train", Input: 5, Hidden: 7, Layers: 1, Batch: 2, Steps: 3, Precision: "fp32"}
		q := p
		q.Cell, q.Hidden, q.Projection = "lstm", 9, 4
		specs := []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "stranger", Label: "stranger"}, {Name: "stranger", Label: "off", Knobs: knob.Params{"off": 1}}}
		if err := s.Run(context.Background(), []tuner.Task{{Point: p, Specs: specs}, {Point: q, Specs: specs}}); err != nil {
			t.Fatal(err)
		}
		if len(recs) != 6 {
			t.Fatalf("%s: %d records", how, len(recs))
		}
		for i := range recs {
			rec := &recs[i]
			code := ""
			if rec.ReasonCode != nil {
				code = *rec.ReasonCode
			}
			got := [2]string{string(rec.Status), code}
			switch {
			case rec.Impl.Name == "naive":
				if got != [2]string{"ok", ""} || rec.Rival != nil {
					t.Errorf("%s: naive is %v, rival %v", how, got, rec.Rival)
				}
			case rec.Rival == nil || rec.Rival.Version != "1.0" || rec.Rival.Name != "stranger":
				t.Errorf("%s: the record does not name the rival: %v", how, rec.Rival)
			case rec.Impl.Label == "off" && want[0] == "ok":
				if got[0] != "incorrect" {
					t.Errorf("%s: a knob that spoils the answer: %v", how, got)
				}
			case got != want && rec.Impl.Label != "off":
				t.Errorf("%s: %v: %v %v, want %v", how, rec.Point, got, rec.Reason, want)
			}
		}
	}
}

// TestVaried: experiments compare all knobs of a rival, or those that are named.
func TestVaried(t *testing.T) {
	for want, vary := range [][]string{{"other"}, nil, {"off", "other"}} {
		o := options(t, "honest")
		o.Vary = vary
		r, err := rival.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Varied(); len(got) != min(want, 1) || len(r.Knobs(rnn.Problem{})) != 1 {
			t.Errorf("of %v: %v", vary, got)
		}
		if got := r.Unoffered(); slices.Contains(got, "off") || len(got) != min(len(vary), 1) {
			t.Errorf("of %v, %v are not offered", vary, got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
