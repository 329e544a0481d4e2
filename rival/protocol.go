package rival

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"rnnbench/internal/safe"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
)

// version is the version of the protocol.
const version = 1

// A request is one line to a rival: one of its fields is set.
type request struct {
	Hello   int      `json:"hello,omitempty"`
	Open    string   `json:"open,omitempty"`    // device
	Threads int      `json:"threads,omitempty"` // open: threads that the rival may use
	Prepare *prepare `json:"prepare,omitempty"`
	Run     int      `json:"run,omitempty"`      // how many times, back to back
	Call    int      `json:"call,omitempty"`     // how many calls, each timed alone
	SettleS float64  `json:"settle_s,omitempty"` // call: for how long untimed ones are made first, which leave the states as they are
	Data    string   `json:"data,omitempty"`     // call: .npz file of new inputs, for several calls, and of states if they are new; "": those before
	Read    string   `json:"read,omitempty"`     // file that the answer of the last run is written to
	Close   int      `json:"close,omitempty"`
}

// verb names a request.
func (q *request) verb() string {
	switch {
	case q.Hello > 0:
		return "hello"
	case q.Open != "":
		return "open"
	case q.Prepare != nil:
		return "prepare"
	case q.Run > 0:
		return "run"
	case q.Call > 0:
		return "call"
	case q.Read != "":
		return "read"
	}
	return "close"
}

// prepare says what the next runs compute.
type prepare struct {
	work
	Data string `json:"data"` // .npz file of the inputs
}

// work is a prepare without its file.
type work struct {
	Point point       `json:"point"`
	Knobs knob.Params `json:"knobs"`
}

// point is a problem in words and sizes.
type point struct {
	Cell      string   `json:"cell"`
	Gates     []string `json:"gates"`  // in the order of the rows of weights
	States    []string `json:"states"` // the output first
	Peepholes []string `json:"peepholes,omitempty"`
	Recurrent int      `json:"recurrent"`           // gates with a recurrent product, the first ones
	Window    int      `json:"window"`              // input steps that a gate reads
	Equations string   `json:"equations,omitempty"` // the file that defines the cell; "": it is built in
	Pass      string   `json:"pass"`
	Precision string   `json:"precision"`
	Input     int      `json:"input"`
	Hidden    int      `json:"hidden"`
	Layers    int      `json:"layers"`
	Batch     int      `json:"batch"`
	Steps     int      `json:"steps"`
	Direction string   `json:"direction,omitempty"` // "": forward
	Calls     int      `json:"calls,omitempty"`     // each of so many steps, with the states kept from call to call; 0: runs of a whole sequence
	Lengths   []int    `json:"lengths,omitempty"`   // of the sequences, the longest first; none: all have all steps

	Projection int    `json:"projection,omitempty"` // values of a layer's output, in place of hidden; 0: no projection
	Resets     int    `json:"resets,omitempty"`     // percentage of steps at which a sequence begins anew, which the array reset lists; 0: none
	Heads      int    `json:"heads,omitempty"`      // parts of the units that the recurrent product does not mix; 0 or 1: it mixes all
	Norm       string `json:"norm,omitempty"`       // "layer": products and cell states are normalised
}

func pointOf(p rnn.Problem) point {
	direction := ""
	if p.Direction != rnn.FromFirst {
		direction = p.Direction.String()
	}
	lengths := rnn.SequenceLengths(p)
	slices.Reverse(lengths)
	return point{
		Cell: p.Cell.Name, Gates: p.Cell.Gates, States: p.Cell.States, Peepholes: p.Cell.Peeps, Recurrent: p.Cell.Multiplied(), Window: p.Cell.Window, Equations: p.Cell.Text,
		Pass: p.Pass.String(), Precision: p.Precision.String(),
		Input: p.Input, Hidden: p.Hidden, Layers: p.Layers, Batch: p.Batch, Steps: p.Steps, Direction: direction, Calls: p.Calls, Lengths: lengths, Projection: p.Projection, Resets: p.Resets, Heads: p.Heads, Norm: p.Norm,
	}
}

// An answer is one line from a rival. Fields that the request does not ask for are ignored.
type answer struct {
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	Devices    []string    `json:"devices"`
	Knobs      []knobOffer `json:"knobs"`
	Precisions []string    `json:"precisions"`
	Directions []string    `json:"directions"` // none: forward
	Lengths    bool        `json:"lengths"`    // sequences may have lengths of their own
	Projection bool        `json:"projection"` // layers may have a projection
	Norms      []string    `json:"norms"`      // values of norm, besides none
	Calls      bool        `json:"calls"`      // it may be called step by step
	Resets     bool        `json:"resets"`     // sequences may begin anew at any step
	Heads      bool        `json:"heads"`      // recurrent weights may be those of heads

	// UnitError is the largest error of its sigmoids and hyperbolic tangents, by the kind of device.
	UnitError map[string]float64 `json:"unit_error"`

	OK     bool      `json:"ok"`
	WallS  *float64  `json:"wall_s"`
	Device any       `json:"device"` // open: its name
	OwnS   *float64  `json:"device_s"`
	CallsS []float64 `json:"calls_s"` // of each call

	Unsupported string `json:"unsupported"` // why it declines
	Spent       bool   `json:"spent"`       // with unsupported: the process can do nothing more
	Error       string `json:"error"`       // why it failed
}

type knobOffer struct {
	Name     string `json:"name"`
	Doc      string `json:"doc"`
	Values   []int  `json:"values"`   // the default first
	Internal bool   `json:"internal"` // for experiments: no list offers it, and no tuner turns it
}

// mostLine is the length of the longest answer, in bytes.
const mostLine = 1 << 16

// parse reads an answer. A rival may send anything.
func parse(line []byte) (*answer, error) {
	var a answer
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return nil, errors.New("it is no JSON object")
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, errors.New("it is no JSON that the protocol knows")
	}
	a.Unsupported, a.Error, a.Version = oneLine(a.Unsupported, mostText), oneLine(a.Error, mostText), oneLine(a.Version, mostVersion)
	return &a, nil
}

// Lengths of texts that go into records, in bytes.
const (
	mostText    = 400
	mostVersion = 60
)

// oneLine is s on one line, without characters that act on a terminal. A text longer than n bytes
// keeps its end.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(safe.Text(s)), " ")
	if len(s) > n {
		s = "… " + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// times returns the times of a sample, given how long its answer took to come.
func (a *answer) times(took time.Duration) (wall, own time.Duration, err error) {
	if a.WallS == nil {
		return 0, 0, errors.New("it has no wall_s")
	}
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	v, d := *a.WallS, 0.0
	if a.OwnS != nil {
		d = *a.OwnS
	}
	switch most := (took + time.Millisecond).Seconds(); {
	case !(v > 0) || d < 0:
		return 0, 0, errors.New("its times are not positive")
	case v > most || d > most:
		return 0, 0, fmt.Errorf("it says that the runs took %.3g s, but the answer came after %.3g s", max(v, d), took.Seconds())
	case 2*v+1 < took.Seconds():
		return 0, 0, fmt.Errorf("it says that the runs took %.3g s, but the answer came only after %.3g s", v, took.Seconds())
	}
	return max(1, seconds(v)), seconds(d), nil
}

// What a hello may offer.
var knobName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

const (
	mostKnobs  = 32
	mostValues = 64
)

// knobs returns the knobs of a hello.
func (a *answer) knobs() ([]knob.Knob, error) {
	if len(a.Knobs) > mostKnobs {
		return nil, fmt.Errorf("it has %d knobs, more than %d", len(a.Knobs), mostKnobs)
	}
	var out []knob.Knob
	for _, k := range a.Knobs {
		switch {
		case !knobName.MatchString(k.Name) || k.Name == "streams":
			return nil, fmt.Errorf("knob %q must be a word of lower-case letters, and not streams", oneLine(k.Name, mostVersion))
		case knob.Find(out, k.Name) != nil:
			return nil, fmt.Errorf("knob %s is listed twice", k.Name)
		case len(k.Values) == 0 || len(k.Values) > mostValues:
			return nil, fmt.Errorf("knob %s has %d values: it needs 1 to %d", k.Name, len(k.Values), mostValues)
		}
		for i, v := range k.Values {
			if v > math.MaxInt32 || v < math.MinInt32 || slices.Contains(k.Values[:i], v) {
				return nil, fmt.Errorf("knob %s has the value %d twice, or it is too large", k.Name, v)
			}
		}
		one := knob.Knob{Name: k.Name, Doc: oneLine(k.Doc, mostText), Values: k.Values, Internal: k.Internal}
		if k.Internal {
			one.Values, one.Min, one.Max = k.Values[:1], slices.Min(k.Values), slices.Max(k.Values)
		}
		out = append(out, one)
	}
	return out, nil
}

// mostUnitError is the largest error of functions that a rival may state: that of cuDNN's, rounded up.
// A larger one would let wrong answers pass.
const mostUnitError = 1e-5

// unitError returns the error of functions that a hello states for a device, such as cuda:0.
func (a *answer) unitError(on string) (float64, error) {
	kind, _, _ := strings.Cut(on, ":")
	e := a.UnitError[kind]
	if !(e >= 0 && e <= mostUnitError) {
		return 0, fmt.Errorf("its unit_error is %g: it must be 0 to %g", e, mostUnitError)
	}
	return e, nil
}

// directions returns the directions of a hello: forward alone, unless it lists some.
func (a *answer) directions() ([]string, error) {
	known := rnn.Directions()
	for i, d := range a.Directions {
		if !slices.Contains(known, d) || slices.Contains(a.Directions[:i], d) {
			return nil, fmt.Errorf("direction %q must be one of %s, once", oneLine(d, mostVersion), strings.Join(known, ", "))
		}
	}
	if len(a.Directions) == 0 {
		return known[:1], nil
	}
	return a.Directions, nil
}

// runsOn reports whether devices has that name or its kind: cuda stands for cuda:0.
func runsOn(devices []string, name string) bool {
	kind, _, _ := strings.Cut(name, ":")
	return slices.Contains(devices, name) || slices.Contains(devices, kind)
}
