package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"rnnbench/device"
)

// A busyGPU is a device in some state. It runs nothing.
type busyGPU struct {
	device.Device
	state []device.Finding
	err   error
}

func (g busyGPU) Inspect() ([]device.Finding, error) { return g.state, g.err }

// TestWarnOfOthers: a command that times runs warns about other programs on the GPU, and the
// manifest keeps their number.
func TestWarnOfOthers(t *testing.T) {
	others := func(n, remedy string) []device.Finding {
		return []device.Finding{{Name: "power", Value: "700 W", Remedy: "let it cool"}, {Name: device.OtherPrograms, Value: n, Remedy: remedy}}
	}
	for _, c := range []struct {
		name string
		on   device.Device
		want string
	}{
		{"two programs", busyGPU{state: others("2", "end the other programs on this GPU")}, "2"},
		{"alone", busyGPU{state: others("0", "")}, ""},
		{"state unknown", busyGPU{err: errors.New("no library")}, ""},
		{"a device without a state", struct{ device.Device }{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text bytes.Buffer
			p := &program{err: &text, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
			b := &bench{Device: c.on, info: device.Info{Name: "cuda:0", Key: "cuda-nvidia-h100"}}
			warnOfOthers(p, b)
			if said := strings.Contains(text.String(), "other programs use cuda:0 (2): end the other programs on this GPU"); said != (c.want != "") {
				t.Errorf("warned %q", text.String())
			}
			if strings.Contains(text.String(), "cool") {
				t.Errorf("warned of more than other programs: %q", text.String())
			}
			if got := b.record().Facts[device.OtherPrograms]; got != c.want {
				t.Errorf("the manifest has %q other programs, want %q", got, c.want)
			}
		})
	}
}
