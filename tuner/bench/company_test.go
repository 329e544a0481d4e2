package bench

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/record"
)

// A busyGPU is a device in some state. It runs nothing.
type busyGPU struct {
	device.Device
	state []device.Finding
	err   error
}

func (g busyGPU) Inspect() ([]device.Finding, error) { return g.state, g.err }

// A listener keeps warnings.
type listener struct {
	Teller
	warnings []string
}

func (l *listener) Warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

func (l *listener) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

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
			said := &listener{}
			b := &Bench{Hardware: Hardware{Device: c.on, Info: device.Info{Name: "cuda:0", Key: "cuda-nvidia-h100"}, tell: said}}
			b.warnOfOthers()
			text := strings.Join(said.warnings, "\n")
			if warned := strings.Contains(text, "other programs use cuda:0 (2): end the other programs on this GPU"); warned != (c.want != "") {
				t.Errorf("warned %q", text)
			}
			if strings.Contains(text, "cool") {
				t.Errorf("warned of more than other programs: %q", text)
			}
			if got := b.Record().Facts[device.OtherPrograms]; got != c.want {
				t.Errorf("the manifest has %q other programs, want %q", got, c.want)
			}
		})
	}
}

// TestNobodyElse: a machine that says nothing is not disturbed.
func TestNobodyElse(t *testing.T) {
	b := &Bench{}
	others := 1.14
	if got := b.usedByOthers(&record.Disturbance{Seconds: 1, Processors: 2, Others: &others}); got != "1.1 of 2 processors" {
		t.Errorf("others use %q", got)
	}
	if b.otherRuns() != nil || b.company() != nil || b.usedByOthers(nil) != "" {
		t.Error("a machine that says nothing is disturbed")
	}
}
