package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/cpu/simd"
	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/config"
	"rnnbench/tuner/job"
)

// settings are the flags of commands that measure. Some set the request at once; resolve does the rest.
type settings struct {
	job.Request
	values  map[string]*texts // flags that package config knows, by name
	file    string            // --config
	rivals  []string          // files of --rival
	network string            // --network
	auto    string            // --auto
	least   string            // --objective
}

// texts is a flag that can be given several times and is read by config.
type texts struct {
	list []string
	kind string
}

func (t *texts) String() string     { return "" }
func (t *texts) Type() string       { return t.kind }
func (t *texts) Set(s string) error { t.list = append(t.list, s); return nil }

// configKeys are the keys of config, listed once: each flag of each command looks for its own.
var configKeys = sync.OnceValue(config.Keys)

// add defines the flag of one of config's keys.
func (s *settings) add(f *pflag.FlagSet, name, kind, short string) {
	keys := configKeys()
	i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == name })
	k := keys[i]
	doc := k.Doc
	switch name { // the documentation of other axes lists their values
	case "pass", "precision":
		doc += ": " + strings.Join(wordsOf(name), ", ")
	case "cell", "preset":
		doc += " (see rnnbench list " + name + "s)"
	}
	if len(k.Choices) > 0 {
		doc += ": " + strings.Join(k.Choices, ", ")
	}
	if k.Default != "" {
		doc += " (default " + k.Default + ")"
	}
	if s.values == nil {
		s.values = map[string]*texts{}
	}
	s.values[name] = &texts{kind: kind}
	f.VarP(s.values[name], name, short, doc)
}

// grid adds the flags that say what is measured.
func (s *settings) grid(cmd *cobra.Command) {
	s.axes(cmd)
	addGroup(cmd, "Techniques", func(f *pflag.FlagSet) {
		s.add(f, "impl", "LIST", "")
		s.add(f, "skip-impl", "LIST", "")
		s.wisdomFlags(f)
	})
	s.points(cmd)
}

// wisdomFlags adds the flags that say how auto chooses.
func (s *settings) wisdomFlags(f *pflag.FlagSet) {
	addWisdomFlag(f, &s.Wisdom)
	f.BoolVar(&s.ReadOnly, "wisdom-read-only", false, "never change the wisdom file, so that all processes choose alike")
	f.BoolVar(&s.Vendor, "with-vendor", false, "allow auto and tune to choose the vendor library")
	s.least = objectiveTime
	f.Var(choice{&s.least, "objective", []string{objectiveTime, record.OfEnergy}}, "objective", "objective of the wisdom that auto follows: time, or energy, which is the joules of a run")
	s.auto = autoPredict
	f.Var(choice{&s.auto, "way", []string{autoPredict, autoRace}}, "auto", "how auto chooses where nothing is tuned: predict, by a cost model; race, which times the best predictions and saves the winner as wisdom")
}

// axes adds the flags of the axes.
func (s *settings) axes(cmd *cobra.Command) {
	addGroup(cmd, axesTitle, func(f *pflag.FlagSet) {
		s.networkFlag(f)
		for _, a := range axis.Flags() {
			s.axis(f, a)
		}
	})
}

// networkFlag adds --network, which sets axes.
func (s *settings) networkFlag(f *pflag.FlagSet) {
	f.StringVar(&s.network, "network", "", "`NAME` of a network (see rnnbench list networks), or a TOML file of its axes; flags of axes override it")
}

const axesTitle = "Axes (512 or 4k, lists 64,128, ranges 64:512:64, doublings 256:4096:x2)"

// axis adds the flag of an axis.
func (s *settings) axis(f *pflag.FlagSet, a axis.Axis) {
	short := ""
	if a.Flag {
		short = a.Letter
	}
	s.add(f, a.Name, "LIST", short)
}

// points adds the flags of points and of conditions on them.
func (s *settings) points(cmd *cobra.Command) {
	addGroup(cmd, "Points", func(f *pflag.FlagSet) {
		s.add(f, "preset", "NAME", "")
		s.add(f, "point", "POINT", "")
		s.add(f, "model", "FILE", "")
		s.add(f, "layer", "NAME", "")
		s.add(f, "zip", "AXES", "")
		s.add(f, "where", "CONDITION", "")
	})
	_ = cmd.MarkFlagFilename("model", modelEndings...) // the flag is there
}

// measure adds the named flags of how to measure.
func (s *settings) measure(cmd *cobra.Command, names ...string) {
	kinds := map[string]string{
		"effort": "WORD", "until": "WORD", "order": "WORD", "cache": "WORD", "data": "WORD", "on-error": "WORD", "isolate": "WORD", "warmup": "TIME", "min-time": "TIME",
		"point-timeout": "TIME", "budget": "TIME", "target-ci": "PERCENT",
	}
	addGroup(cmd, "Measuring", func(f *pflag.FlagSet) {
		for _, name := range names {
			kind := kinds[name]
			if kind == "" {
				kind = "N"
			}
			s.add(f, name, kind, "")
		}
	})
}

// device adds the flags of the device and its limits.
func (s *settings) device(cmd *cobra.Command) {
	addGroup(cmd, "Device", func(f *pflag.FlagSet) {
		s.add(f, "device", "NAME", "")
		s.add(f, "threads", "N", "")
		s.simdFlag(f)
		f.StringVar(&s.Memory, "max-memory", "", "memory limit `SIZE` per technique, such as 8GiB (default 90 % of free memory)")
	})
}

func (s *settings) simdFlag(f *pflag.FlagSet) {
	f.Var(choice{&s.SIMD, "instruction set", simd.Names()}, "simd", "instruction set of the CPU: "+strings.Join(simd.Names(), ", ")+" (default: the best supported one that $"+simd.Variable+" allows); in bf16, avx512bf16 and amx round both factors of a product, the others weights alone")
}

// source adds the flag of the configuration file.
func (s *settings) source(cmd *cobra.Command) {
	addGroup(cmd, "Configuration (flags override RNNBENCH_… variables, which override the file)", func(f *pflag.FlagSet) {
		f.StringVar(&s.file, "config", "", "read settings from a TOML `FILE`")
	})
	_ = cmd.MarkFlagFilename("config", "toml") // the flag is there
}

// rivalFlag adds --rival, which makes other programs techniques.
func (s *settings) rivalFlag(cmd *cobra.Command) {
	addGroup(cmd, "Techniques", func(f *pflag.FlagSet) {
		f.StringArrayVar(&s.rivals, "rival", nil, "read [[rival]] tables from a TOML `FILE`: programs to run as techniques (see docs/rivals.md); repeatable")
	})
	_ = cmd.MarkFlagFilename("rival", "toml") // the flag is there
	s.Rivals = true
}

// set sets a flag that package config knows, as if the user had.
func (s *settings) set(name, value string) { s.values[name] = &texts{list: []string{value}} }

// given reports whether the user gave a flag that package config knows.
func (s *settings) given(name string) bool {
	return s.values[name] != nil && s.values[name].list != nil
}

// resolve makes the request. Flags override the environment, which overrides files of --rival, the file of
// --config, and base. --network is like flags of axes, but weaker than these.
func (s *settings) resolve(p *program, base ...config.Layer) error {
	var flags config.Layer
	for name, t := range s.values {
		if t.list == nil {
			continue
		}
		if err := flags.Set(name, t.list...); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	env, warnings, err := config.FromEnv(os.Environ())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		p.Warn("%s", w)
	}
	s.Layers = []config.Layer{flags}
	if s.network != "" {
		network, err := config.ReadNetwork(s.network)
		if err == nil && (s.given("preset") || s.given("model")) {
			err = errors.New("--preset and --model say what the networks are, so --network cannot: omit it, or them")
		}
		if err != nil {
			return err
		}
		s.Layers = append(s.Layers, network)
	}
	s.Layers = append(s.Layers, env)
	for _, file := range s.rivals {
		l, err := config.ReadRivals(file)
		if err != nil {
			return err
		}
		s.Layers = append(s.Layers, l)
	}
	if s.file != "" {
		file, err := config.ReadFile(s.file)
		if err != nil {
			return err
		}
		s.Layers = append(s.Layers, file)
	}
	s.Version, s.Argv, s.Race = version(), p.args, s.auto == autoRace
	s.Objective = s.objective()
	s.Config, err = config.Resolve(append(s.Layers, base...)...)
	return err
}

// Values of --auto: how to choose where no wisdom applies.
const (
	autoPredict = "predict"
	autoRace    = "race"
)

// objectiveTime is the default of --objective.
const objectiveTime = "time"

// objective returns --objective as wisdom stores it: "" for time.
func (s *settings) objective() string {
	if s.least == record.OfEnergy {
		return s.least
	}
	return ""
}

// resumeFlag is the flag of commands that continue a run.
func (s *settings) resumeFlag(fs *pflag.FlagSet) {
	fs.StringVar(&s.Resume, "resume", "", "resume a `RUN`: its folder, id or label, or a results folder (its latest run); without a value, the latest")
}

// retryFlag is the flag of commands that measure points again.
func (s *settings) retryFlag(fs *pflag.FlagSet) {
	fs.BoolVar(&s.RetryFailed, "retry-failed", false, "with --resume, retry points that failed, timed out or gave a wrong answer")
}

// bareResume gives --resume the value job.Latest if it has none.
func bareResume(args []string) []string {
	i := slices.Index(args, "--resume")
	if i < 0 || i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") || slices.Contains(args[:i], "--") {
		return args
	}
	args = slices.Clone(args)
	args[i] = "--resume=" + job.Latest
	return args
}

// shardFlag adds the flag of commands that measure a part of a plan.
func (s *settings) shardFlag(fs *pflag.FlagSet) {
	fs.StringVar(&s.Shard, "shard", "", "measure shard `I/N` of the plan, or continue it (see rnnbench merge); default: the shard of a scheduler's array of jobs; off: the whole plan")
	fs.StringVar(&s.Submitted, "submitted-version", "", "`VERSION` of rnnbench that submitted the job")
	fs.StringVar(&s.Required, "submitted-device", "", "`KEY` of the device that the job was submitted for")
	for _, name := range []string{"submitted-version", "submitted-device"} {
		_ = fs.MarkHidden(name) // it is there
	}
}
