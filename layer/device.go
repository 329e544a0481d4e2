// Package layer runs recurrent layers for a host program: a program of somebody else, in its
// process, on its memory. It finds the fastest technique for a shape, and its plans are the same
// programs that a sweep times.
//
// All methods may be called from any thread. Those of one device run one after the other.
package layer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/internal/nearest"
	"rnnbench/rnn"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/wisdom"
)

// ErrInvalid wraps mistakes of the host program.
var ErrInvalid = errors.New("invalid")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// A Device is where layers run.
type Device struct {
	mu      sync.Mutex
	unlock  func() // of mu, made once: each call returns it
	device  device.Device
	version string
	oracles map[string]*auto.Oracle // by pass and mode
	layers  []*Layer
	closed  bool
}

// GPU opens an NVIDIA GPU in this process. It is nil where the program is built without CUDA.
var GPU func(index int) (device.Device, error)

// Open opens "cpu", "cpu:4", which has so many threads, or "cuda:0". version is that of the program;
// wisdom of other versions is stale.
func Open(name, version string) (*Device, error) {
	kind, number, numbered := strings.Cut(name, ":")
	n, err := strconv.Atoi(number)
	if numbered && (err != nil || n < 0) {
		return nil, invalid("the device is %q: use cpu, cpu:4 or cuda:0", name)
	}
	d := &Device{version: version, oracles: map[string]*auto.Oracle{}}
	switch {
	case kind == "cpu" && numbered && n == 0:
		return nil, invalid("the device is %q: a CPU needs at least one thread", name)
	case kind == "cpu":
		d.device, err = cpu.Open(cpu.Options{Threads: n})
	case kind == "cuda" && GPU == nil:
		return nil, invalid("this library was built without CUDA: build it with make lib CUDA=/usr/local/cuda")
	case kind == "cuda":
		d.device, err = GPU(n)
	default:
		return nil, invalid("%w", nearest.Unknown("device", name, []string{"cpu", "cuda:0"}))
	}
	if err != nil {
		return nil, err
	}
	d.unlock = d.mu.Unlock
	return d, nil
}

// enter begins a call. The caller calls leave when the call is over.
func (d *Device) enter() (leave func(), err error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, invalid("the device is closed")
	}
	t, ok := d.device.(device.Threaded)
	if !ok {
		return d.unlock, nil
	}
	out, err := t.Enter()
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return func() {
		out()
		d.mu.Unlock()
	}, nil
}

// oracle returns the oracle that chooses techniques for a pass. With race it times the likeliest.
func (d *Device) oracle(pass rnn.Pass, race bool) *auto.Oracle {
	key := fmt.Sprint(pass, race)
	if o := d.oracles[key]; o != nil {
		return o
	}
	info := d.device.Info()
	libraries := maps.Clone(info.Libraries)
	if libraries == nil {
		libraries = map[string]string{}
	}
	libraries["workers"] = fmt.Sprint(info.Workers)
	path, err := wisdom.Path("")
	if err != nil {
		path = "" // without a home folder there is no wisdom
	}
	o := &auto.Oracle{
		Device: d.device, Info: info, Techniques: impl.Own(), Limit: d.free(), Cache: "hot", Tool: d.version, Libraries: libraries, Steady: true,
		Allowed: func(name string) bool {
			return impl.Lookup(name) != nil && (name != "scc" || pass == rnn.Forward)
		},
		Read: func() (*wisdom.Book, error) {
			if path == "" {
				return &wisdom.Book{}, nil
			}
			return wisdom.Read(path)
		},
	}
	if race {
		o.Race = racer(o, path)
	}
	d.oracles[key] = o
	return o
}

// free returns the bytes that a plan may take; 0: unknown.
func (d *Device) free() int64 { return d.device.Info().Memory / 10 * 9 }

// Describe returns the device as JSON.
func (d *Device) Describe() (string, error) {
	leave, err := d.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	info := d.device.Info()
	return text(struct {
		Device    string            `json:"device"`
		Model     string            `json:"model"`
		Workers   int               `json:"workers"`
		Precision []string          `json:"precision"`
		Libraries map[string]string `json:"libraries"`
	}{info.Name, info.Model, info.Workers, info.Precision, info.Libraries})
}

// text returns v as JSON.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// Close closes the device with its layers. Closing it again does nothing.
func (d *Device) Close() error {
	leave, err := d.enter()
	if err != nil {
		return nil
	}
	d.closed = true
	var failed error
	for _, l := range d.layers {
		failed = errors.Join(failed, l.close())
	}
	d.layers = nil
	leave() // all other calls are refused from here on
	return cmp.Or(failed, d.device.Close())
}

// forget removes a closed layer.
func (d *Device) forget(l *Layer) {
	d.layers = slices.DeleteFunc(d.layers, func(o *Layer) bool { return o == l })
}
