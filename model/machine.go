// Package model predicts the speed of recurrent layers whose weights stay on chip.
//
// It needs only a description of the machine. It uses the Multi-BSP model of Diamos et al. (2016),
// sections 3.1 and 5.1.4. For scans it uses the cost by Martin & Cundy (2017), section 2.1. It
// measures nothing and knows no device, so it also predicts for machines that do not exist.
package model

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"rnnbench/internal/tomlfile"
)

// A Machine is a hierarchy of modules, each made of modules of the level below.
type Machine struct {
	Name   string `toml:"name" json:"name"`
	Source string `toml:"source" json:"source"` // where the numbers come from

	// Unsure names what was disturbed while it was measured, so that its rate is probably too low.
	Unsure []string `toml:"unsure,omitempty" json:"unsure,omitempty"`

	FLOPS     float64 `toml:"flops" json:"flops"`         // single-precision operations per second in products, all parts together
	Half      float64 `toml:"half" json:"half"`           // how many times faster 16-bit arithmetic is; 0: there is none
	Pointwise float64 `toml:"pointwise" json:"pointwise"` // sigmoids or hyperbolic tangents per second, all parts together; 0: they cost nothing

	// Overlap says that the sequences of a batch follow each other through the stages of a step.
	// One's waiting then hides behind another's products (section 4.1).
	Overlap bool `toml:"overlap" json:"overlap"`

	GPU *GPU `toml:"gpu,omitempty" json:"gpu,omitempty"` // nil: blocks that hold a layer cannot be predicted

	Levels []Level `toml:"level" json:"levels"` // from the innermost

	Links Links `toml:"link,omitempty" json:"links,omitempty"` // to other machines, the one that joins the fewest first; none: unknown

	Meetings []Meeting `toml:"meeting,omitempty" json:"meetings,omitempty"` // of some numbers of parts, the fewest first; none: unknown
}

// A Meeting is the time in which so many parts synchronise while the others are idle.
type Meeting struct {
	Parts   int     `toml:"parts" json:"parts"`
	Seconds float64 `toml:"seconds" json:"seconds"`
}

// Meets is the time, in seconds, in which so many parts synchronise. It interpolates between
// measured numbers of parts. Beyond them parts take as long as all. One part takes no time.
func (m *Machine) Meets(parts int) float64 {
	if parts < 2 {
		return 0
	}
	before := Meeting{Parts: 1}
	for _, x := range m.Meetings {
		if parts <= x.Parts {
			return before.Seconds + (x.Seconds-before.Seconds)*float64(parts-before.Parts)/float64(x.Parts-before.Parts)
		}
		before = x
	}
	return m.Barrier()
}

// A Level is the tuple (p, b, c, m) of one level, section 3.1. The latency of Figure 1 and the rate
// of exchange stand beside it.
type Level struct {
	Name string  `toml:"name" json:"name"`
	P    int     `toml:"p" json:"p"` // modules of the level below in one of this level; 1 where it only adds memory
	B    float64 `toml:"b" json:"b"` // bytes per second that the memory of one module gives; 0: as many as arithmetic takes
	C    float64 `toml:"c" json:"c"` // seconds to synchronise the parts
	L    float64 `toml:"l" json:"l"` // seconds until a part has what another one wrote
	X    float64 `toml:"x" json:"x"` // bytes per second that all parts exchange; 0: B
	M    float64 `toml:"m" json:"m"` // bytes of one module's memory that weights can use
}

// Check reports the first invalid number.
func (m *Machine) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("model: machine %q: %s", m.Name, fmt.Sprintf(format, args...))
	}
	number := func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) } // false for NaN
	switch {
	case m.Name == "":
		return errors.New("model: the machine has no name")
	case !number(m.FLOPS) || m.FLOPS == 0:
		return bad("flops is %v: it must be positive", m.FLOPS)
	case !number(m.Half) || !number(m.Pointwise):
		return bad("half is %v and pointwise %v: neither must be negative", m.Half, m.Pointwise)
	case len(m.Levels) == 0:
		return bad("it has no level")
	}
	for _, l := range m.Levels {
		switch {
		case l.Name == "":
			return bad("a level has no name")
		case l.P < 1 || l.P > 1<<16:
			return bad("level %s: p is %d: it must be 1 to %d", l.Name, l.P, 1<<16)
		case !number(l.B) || !number(l.C) || !number(l.L) || !number(l.X) || !number(l.M):
			return bad("level %s: b, c, l, x and m must be numbers of at least 0", l.Name)
		case l.P > 1 && l.B == 0 && l.X == 0:
			return bad("level %s: its %d parts need b or x, the rate at which they exchange", l.Name, l.P)
		}
	}
	if m.GPU != nil {
		if why := m.GPU.check(); why != "" {
			return bad("%s", why)
		}
	}
	if why := checkMeetings(m.Meetings); why != "" {
		return bad("%s", why)
	}
	for _, l := range m.Links {
		if why := l.check(); why != "" {
			return bad("%s", why)
		}
	}
	if last := m.Levels[len(m.Levels)-1]; last.B == 0 {
		return bad("level %s: the outermost level needs b, the rate of main memory", last.Name)
	}
	return nil
}

// checkMeetings reports the first invalid meeting; "": none.
func checkMeetings(all []Meeting) string {
	before := 1
	for _, x := range all {
		if x.Parts <= before || x.Parts > 1<<16 {
			return fmt.Sprintf("a meeting has %d parts after one of %d: they must grow, from 2 to %d", x.Parts, before, 1<<16)
		}
		if !(x.Seconds >= 0) || math.IsInf(x.Seconds, 1) {
			return fmt.Sprintf("a meeting of %d parts takes %v seconds: it must be a number of at least 0", x.Parts, x.Seconds)
		}
		before = x.Parts
	}
	return ""
}

// Parts is the number of innermost modules.
func (m *Machine) Parts() int {
	n := 1
	for _, l := range m.Levels {
		n *= l.P
	}
	return n
}

// Barrier is the time in seconds to synchronise all parts.
func (m *Machine) Barrier() (c float64) {
	for _, l := range m.Levels {
		c += l.C
	}
	return c
}

// Private is the number of levels, from the innermost, that belong to one core:
// those below the outermost level of several modules, or below main memory.
func (m *Machine) Private() int {
	for i, l := range slices.Backward(m.Levels) {
		if l.P > 1 {
			return i
		}
	}
	return len(m.Levels) - 1
}

//go:embed machines/*.toml
var files embed.FS

// Builtin lists the machines that the program knows, oldest first.
func Builtin() []string { return []string{"k40", "k80", "titanx", "m40", "xeon", "h100", "h200"} }

// other lists words in a device's name that mark a smaller card of the same name, with other links.
var other = []string{"pcie", "nvl"}

// Find returns the built-in machine for a device of that name, or nil if there is none.
func Find(device string) (*Machine, error) {
	words := strings.Fields(strings.ToLower(device))
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(other, w) }) {
		return nil, nil
	}
	for _, name := range Builtin() {
		if slices.Contains(words, name) {
			return Load(name)
		}
	}
	return nil, nil
}

// Load returns the built-in machine of that name, or else reads the file of that path.
func Load(name string) (*Machine, error) {
	if slices.Contains(Builtin(), name) {
		text, err := files.ReadFile(path.Join("machines", name+".toml"))
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		return Parse(text)
	}
	text, err := tomlfile.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("model: unknown machine or file %q: the machines are %s", name, strings.Join(Builtin(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	m, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, name)
	}
	return m, nil
}

// Parse reads a machine from TOML.
func Parse(text []byte) (*Machine, error) {
	m := &Machine{}
	if err := tomlfile.Decode(text, m); err != nil {
		var unknown tomlfile.UnknownError
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("model: a machine has no %s", strings.Join(unknown[0].Key, "."))
		}
		return nil, fmt.Errorf("model: %w", err)
	}
	var stated struct {
		Level []struct {
			M *float64 `toml:"m"`
		} `toml:"level"`
	}
	if err := toml.Unmarshal(text, &stated); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	for i, l := range stated.Level {
		if l.M == nil { // as in a file that was cut off
			return nil, fmt.Errorf("model: machine %q: level %s has no m, the bytes of memory for weights", m.Name, m.Levels[i].Name)
		}
	}
	return m, m.Check()
}

// Format spells a machine as TOML, as Parse reads it.
func (m *Machine) Format() ([]byte, error) {
	text, err := toml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return text, nil
}
