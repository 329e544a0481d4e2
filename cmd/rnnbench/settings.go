package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/allreduce"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// usualDir is the default results folder. It is not "results", which in a checkout is the folder
// of a package.
const usualDir = "out"

// settings are the flags that package config knows, and flags of the command line alone.
type settings struct {
	values map[string]*texts // by name
	file   string
	simd   string
	memory string // --max-memory
	wisdom string // file
	vendor bool   // --with-vendor
	auto   string // --auto
	least  string // --objective

	group  *allreduce.Group // of a worker that is one of several replicas
	rivals []string         // files of --rival
	guests bool             // the command measures rivals
	times  bool             // the command times runs
	race   bool             // --with-rival
}

// texts is a flag that can be given several times and is read by config.
type texts struct {
	list []string
	kind string
}

func (t *texts) String() string     { return "" }
func (t *texts) Type() string       { return t.kind }
func (t *texts) Set(s string) error { t.list = append(t.list, s); return nil }

// add defines the flag of one of config's keys.
func (s *settings) add(f *pflag.FlagSet, name, kind, short string) {
	keys := config.Keys()
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
	if name == "out" {
		k.Default = usualDir
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
	addWisdomFlag(f, &s.wisdom)
	f.BoolVar(&s.vendor, "with-vendor", false, "allow auto and tune to choose the vendor library")
	s.least = objectiveTime
	f.Var(choice{&s.least, "objective", []string{objectiveTime, record.OfEnergy}}, "objective", "objective of the wisdom that auto follows: time, or energy, which is the joules of a run")
	s.auto = autoPredict
	f.Var(choice{&s.auto, "way", []string{autoPredict, autoRace}}, "auto", "how auto chooses where nothing is tuned: predict, by a cost model; race, which times the best predictions and saves the winner as wisdom")
}

// axes adds the flags of the axes.
func (s *settings) axes(cmd *cobra.Command) {
	addGroup(cmd, axesTitle, func(f *pflag.FlagSet) {
		for _, a := range axis.Flags() {
			s.axis(f, a)
		}
	})
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
		s.add(f, "zip", "AXES", "")
		s.add(f, "where", "CONDITION", "")
	})
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
		f.StringVar(&s.memory, "max-memory", "", "memory limit `SIZE` per technique, such as 8GiB (default 90 % of free memory)")
	})
}

func (s *settings) simdFlag(f *pflag.FlagSet) {
	f.Var(choice{&s.simd, "instruction set", levels()}, "simd", "instruction set of the CPU: "+strings.Join(levels(), ", ")+" (default: the best supported one that $"+simd.Variable+" allows); in bf16, avx512bf16 and amx round both factors of a product, the others weights alone")
}

// levels lists the instruction sets that there are kernels for.
func levels() []string {
	return simd.Names()
}

// source adds the flag of the configuration file.
func (s *settings) source(cmd *cobra.Command) {
	addGroup(cmd, "Configuration (flags override RNNBENCH_… variables, which override the file)", func(f *pflag.FlagSet) {
		f.StringVar(&s.file, "config", "", "read settings from a TOML `FILE`")
	})
	_ = cmd.MarkFlagFilename("config", "toml") // the flag is there
}

// resolve combines flags, environment, files of --rival, file of --config, and base; earlier ones win.
func (s *settings) resolve(p *program, base ...config.Layer) (config.Config, error) {
	var flags config.Layer
	for name, t := range s.values {
		if t.list == nil {
			continue
		}
		if err := flags.Set(name, t.list...); err != nil {
			return config.Config{}, fmt.Errorf("--%s: %w", name, err)
		}
	}
	env, warnings, err := config.FromEnv(os.Environ())
	if err != nil {
		return config.Config{}, err
	}
	for _, w := range warnings {
		p.warn("%s", w)
	}
	rivals, err := s.rivalLayers()
	if err != nil {
		return config.Config{}, err
	}
	layers := append([]config.Layer{flags, env}, rivals...)
	if s.file != "" {
		file, err := config.ReadFile(s.file)
		if err != nil {
			return config.Config{}, err
		}
		layers = append(layers, file)
	}
	layers = append(layers, base...)
	var usual config.Layer
	if err := usual.Set("out", usualDir); err != nil {
		return config.Config{}, err
	}
	return config.Resolve(append(layers, usual)...)
}

// dir returns the results folder.
func (s *settings) dir(p *program) (string, error) {
	c, err := s.resolve(p)
	return c.Dir, err
}

// options returns the CPU's options that the settings ask for.
func (s *settings) options(c config.Config) (cpu.Options, error) {
	o := cpu.Options{Threads: c.Measure.Threads}
	if err := simd.Check(); err != nil {
		return o, err
	}
	if s.simd != "" {
		level, err := simd.Parse(s.simd)
		if err != nil {
			return o, err
		}
		o.Level = &level
	}
	return o, nil
}

// maxMemory returns --max-memory in bytes; 0: not set.
func (s *settings) maxMemory() (int64, error) {
	if s.memory == "" {
		return 0, nil
	}
	c, err := grid.ParseCondition("mem<=" + s.memory) // the same sizes as in --where
	if err != nil {
		return 0, fmt.Errorf("--max-memory: %q is not a size: write one such as 8GiB or 500MiB", s.memory)
	}
	var bytes float64
	if _, err := fmt.Sscanf(strings.TrimPrefix(c.String(), "mem<="), "%g", &bytes); err != nil || bytes < 1 || bytes > 1<<60 {
		return 0, fmt.Errorf("--max-memory: %q must be from 1 byte to 1 EiB", s.memory)
	}
	return int64(bytes), nil
}
