package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// choosing reports whether a command wants the configured rival r: the grid names it, or names
// no technique, or says all. named reports that the grid names it.
func choosing(c config.Config, r config.Rival) (wanted, named bool) {
	all := len(c.Grid.Impl) == 0
	for _, word := range c.Grid.Impl {
		spec, err := grid.ParseSpec(word, nil)
		named = named || err == nil && spec.Name == r.Name
		all = all || word == "all"
	}
	skipped := slices.Contains(c.Grid.SkipImpl, r.Name)
	return (named || all) && !skipped, named
}

// openRivals starts the wanted rivals on the device. It returns an error if a rival that the
// user named does not start, and only warns about the others.
func (b *Bench) openRivals(from Options) error {
	c := from.Config
	if !from.Rivals {
		return nil
	}
	for _, r := range c.Rivals {
		if name := r.Name; impl.Lookup(name) != nil || name == auto.Name || name == Reference || name == "all" {
			return exit.Misuse(fmt.Errorf("rival %s has the name of a technique: give it another name", name), "rnnbench list techniques")
		}
		wanted, named := choosing(c, r)
		if !wanted {
			continue
		}
		o := rival.Options{
			Name: r.Name, Command: r.Command, Devices: r.Devices, Vary: r.Vary, On: b.Info, Timeout: max(time.Minute, 2*c.Measure.PointTimeout),
		}
		started, err := rival.Open(o)
		switch {
		case err != nil && named && missingFile(r.Command) != "":
			return exit.Misuse(err, "the command of the [[rival]] names "+missingFile(r.Command)+", which does not exist: build or install it first")
		case named && errors.Is(err, rival.ErrAnswer) && !turned(c, r.Name):
			b.tell.Warn("all points of rival %s fail: %v", r.Name, err)
			b.Rivals = append(b.Rivals, rival.Failing(o, err))
		case err != nil && named:
			return exit.With(exit.NoDevice, err, "check the command of the [[rival]], or omit "+r.Name+" from --impl")
		case err != nil:
			b.tell.Warn("rival %s is left out: %v", r.Name, err)
		default:
			b.Rivals = append(b.Rivals, started)
			b.tellUnoffered(started)
		}
	}
	return nil
}

// missingFile returns the program or the script of a command that does not exist; "": all do.
func missingFile(command []string) string {
	if _, err := exec.LookPath(command[0]); err != nil {
		return command[0]
	}
	for _, a := range command[1:] {
		if filepath.Ext(a) != "" && !strings.HasPrefix(a, "-") && !strings.ContainsAny(a, " =") && !there(a) {
			return a
		}
	}
	return ""
}

// turned reports whether the grid sets a knob of a rival, which are unknown if it does not start.
func turned(c config.Config, name string) bool {
	return slices.ContainsFunc(c.Grid.Impl, func(word string) bool {
		spec, err := grid.ParseSpec(word, nil)
		return err == nil && spec.Name == name && len(spec.Knobs) > 0
	})
}

// tellUnoffered warns about a name in vary that is probably a misspelled knob. It only logs the
// other names, which may be knobs on another device.
func (b *Bench) tellUnoffered(r *rival.Rival) {
	var offered []string
	for _, k := range r.Knobs(rnn.Problem{}) {
		offered = append(offered, k.Name)
	}
	for _, name := range r.Unoffered() {
		if near := grid.Nearest(name, offered); near != "" {
			b.tell.Warn("vary of rival %s names %q, which is not one of its knobs: did you mean %s?", r.Name(), name, near)
			continue
		}
		b.tell.Logger().Debug("rival does not offer a knob on this device", "rival", r.Name(), "knob", name, "offers", strings.Join(offered, ", "))
	}
}

// techniques lists this program's techniques and the rivals.
func (b *Bench) Techniques() []rnn.Technique {
	list := impl.All()
	for _, r := range b.Rivals {
		list = append(list, r)
	}
	return list
}

// Rivals are the rivals that have started.
type Rivals []*rival.Rival

func (g Rivals) names() []string {
	var names []string
	for _, r := range g {
		names = append(names, r.Name())
	}
	return names
}

// Close ends the rivals, then the device.
func (b *Bench) Close() error {
	var err error
	for _, r := range b.Rivals {
		err = errors.Join(err, r.Close())
	}
	return errors.Join(err, b.Device.Close())
}

// note adds each rival to a manifest's facts, with its version and the knobs that experiments
// vary: "rival pytorch" is "2.11.0 graph=0,1".
func (g Rivals) note(facts map[string]string) {
	for _, r := range g {
		if !r.Runs() {
			continue
		}
		words := []string{strings.Join(strings.Fields(r.Version()), "_")}
		for _, k := range r.Varied() {
			words = append(words, k.Name+"="+strings.ReplaceAll(knob.Knob{Values: k.Values}.Offer(), " ", ""))
		}
		facts[record.RivalFact+r.Name()] = strings.Join(words, " ")
	}
}

// Outdate reports whether r was measured with another version of its rival.
func (g Rivals) Outdate(r *record.Record) bool {
	return r.Rival != nil && !slices.ContainsFunc(g, func(x *rival.Rival) bool {
		return x.Name() == r.Rival.Name && x.Version() == r.Rival.Version
	})
}

// IsRival reports whether a configuration has a rival of that name.
func IsRival(c config.Config, name string) bool {
	return slices.ContainsFunc(c.Rivals, func(r config.Rival) bool { return r.Name == name })
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
