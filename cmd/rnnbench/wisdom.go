package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/internal/input"
	"rnnbench/internal/tomlfile"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/campaign"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

func wisdomCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "wisdom COMMAND",
		Short:   "Inspect, merge and export tuning results",
		GroupID: "manage",
		Long: `Wisdom holds the results of rnnbench tune: the fastest technique and settings for each
point and device. Its TOML file is --wisdom FILE, or else $RNNBENCH_WISDOM, or else
rnnbench/wisdom.toml in the user's configuration folder.

--impl auto chooses a technique by the first of these that applies:

  exact      the entry of this point
  nearest    the entry of the nearest shape, at most two doublings away, with the
             same cell, pass, precision and device
  predicted  what the device's cost model expects to be the fastest
  raced      instead, with --auto race: the fastest of the best predictions in a
             short race, which becomes an entry
  default    where the device has no cost model: scan for linear recurrences,
             persistent for others of several time steps, else cudnnstyle

An entry counts only on its own machine; elsewhere, rnnbench tune tries its settings first.
A file with --wisdom-read-only makes all processes choose alike at its points.

Only --with-vendor allows the vendor library. Each record has the choice and its reason.`,
		Example: `  rnnbench wisdom show
  rnnbench wisdom lookup --cell lstm -H 768 -B 16 -T 100
  rnnbench wisdom merge theirs.toml
  rnnbench wisdom prune --stale
  rnnbench wisdom export --device cpu-amd-epyc-2t -f ours.toml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Misuse(grid.Unknown("wisdom command", args[0], commandNames(cmd)), "rnnbench wisdom --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(wisdomShow(p), wisdomLookup(p), wisdomMerge(p), wisdomPrune(p), wisdomExport(p))
	return cmd
}

// knownBook is readBook for commands that do not create a file.
func knownBook(file string) (*wisdom.Book, string, error) {
	if err := wisdom.Missing(file); err != nil {
		return nil, "", err
	}
	return readBook(file)
}

// readBook reads the wisdom file of --wisdom, or the default one, and returns it with its path.
func readBook(file string) (*wisdom.Book, string, error) {
	path, err := wisdom.Path(file)
	if err != nil {
		return nil, "", exit.With(exit.Error, err, "")
	}
	b, err := wisdom.Read(path)
	if err != nil {
		return nil, "", exit.With(exit.Error, err, "use --wisdom FILE for another file, or delete a damaged one: rnnbench tune creates a new file")
	}
	return b, path, nil
}

// tableFlag adds the flag of commands that print a table.
func tableFlag(cmd *cobra.Command, format, file *string) {
	*format = "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
		addWisdomFlag(fs, file)
	})
}

func wisdomShow(p *program) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use: "show [flags]", Short: "List all entries", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: "  rnnbench wisdom show\n  rnnbench wisdom show -o json\n  rnnbench wisdom show --wisdom theirs.toml",
	}
	tableFlag(cmd, &format, &file)
	return p.verb(cmd, func(context.Context, *cobra.Command, []string) error {
		b, path, err := knownBook(file)
		if err != nil {
			return err
		}
		p.Note("%s in %s", entries(len(b.Entries)), path)
		if len(b.Entries) == 0 {
			p.Note("hint: rnnbench tune adds entries")
		}
		return entryTable(b.Entries, devicesHere(p, b)).Write(p.out, format, p.style())
	})
}

// entries formats a number of entries.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// devicesHere opens the devices of this machine that b has entries of, and returns their versions. It says of how
// many entries no version is known but the program's.
func devicesHere(p *program, b *wisdom.Book) wisdom.Here {
	here := wisdom.Here{}
	for _, name := range []string{"cpu", "cuda:0"} {
		if !slices.ContainsFunc(b.Entries, func(e wisdom.Entry) bool { return record.OnGPU(e.Device) == bench.IsGPU(name) }) {
			continue
		}
		d, err := bench.OpenDevice(bench.Options{Config: config.Config{Devices: []string{name}, Measure: config.Default()}}, nil)
		if err != nil {
			continue // it is not at hand
		}
		_, here[d.Info.Key] = d.Versions()
		d.Close()
	}
	unknown := 0
	for _, e := range b.Entries {
		if here[e.Device] == nil {
			unknown++
		}
	}
	if unknown > 0 {
		p.Note("driver not known here for %s of other machines: stale is judged by the version of rnnbench alone", entries(unknown))
	}
	return here
}

// entryTable returns a table of entries.
func entryTable(list []wisdom.Entry, here wisdom.Here) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Name: "device", Key: "device"}, {Name: "point", Key: "point"}, {Name: "fastest", Key: "impl"}, {Name: "time", Key: "time_s", Right: true},
		{Name: "runner-up", Key: "runner_up"}, {Name: "slower by", Key: "lead", Right: true}, {Name: "tried", Key: "tried", Right: true},
		{Name: "tuned", Key: "time"}, {Key: "tool"}, {Key: "run"}, {Key: "cache"}, {Key: "complete"}, {Key: "objective"}, {Key: "joules"}, {Key: "unsure"},
		{Name: "stale", Key: "stale"}, {Key: "by"}, {Key: "libraries"},
	}}
	for _, e := range list {
		point := e.Point.String()
		if e.Cache != "hot" {
			point += " " + e.Cache
		}
		objective, joules := objectiveTime, table.Cell{}
		if e.Objective != "" {
			point += ", least " + e.Objective
			objective, joules = e.Objective, table.Number(e.Joules, quantity.SI(e.Joules, "J"))
		}
		row := []table.Cell{
			table.Text(e.Device), table.Text(point), {Text: bench.FormatSpec(e.Impl, e.Knobs, e.Point, e.Device), Value: fullSpec(e)}, table.Number(e.Seconds, quantity.SI(e.Seconds, "s")),
			table.Text(e.RunnerUp), {}, table.Int(e.Tried), {Text: e.Time.Format(time.DateOnly), Value: e.Time.Format(time.RFC3339)},
			table.Text(e.Tool), table.Text(e.Run), table.Text(e.Cache), {Text: fmt.Sprint(e.Complete), Value: e.Complete}, table.Text(objective), joules, {Text: fmt.Sprint(e.Unsure), Value: e.Unsure},
			table.Text(strings.Join(e.Stale(version(), here[e.Device]), ", ")), table.Text(cmp.Or(e.By, "tuning")), table.Text(versions(e.Libraries)),
		}
		if e.RunnerUp != "" {
			row[5] = table.Number(e.Lead, campaign.Slower(e.Lead))
			if e.Unsure {
				row[5].Text += " (unsure)"
			}
		}
		if e.RunnerUp != "" && e.Lead < 0 && t.Notes == nil {
			t.Notes = []string{campaign.Behind}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// versions lists libraries with their versions.
func versions(libraries map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		list = append(list, name+" "+libraries[name])
	}
	return strings.Join(list, ", ")
}

// fullSpec formats an entry's technique with all its settings for --impl.
func fullSpec(e wisdom.Entry) string {
	return grid.Spec{Name: e.Impl, Knobs: knob.Params(e.Knobs)}.String()
}

func wisdomLookup(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lookup [flags]", Short: "Show the choice of --impl auto at each point, and its reason", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: `  rnnbench wisdom lookup -H 768 -B 16 -T 100
  rnnbench wisdom lookup --preset deepbench-infer -o csv
  rnnbench wisdom lookup --cell gru --pass train -H 64:512:x2 --device cuda:0`,
	}
	var s settings
	format := "table"
	s.axes(cmd)
	addGroup(cmd, "Techniques", func(f *pflag.FlagSet) { s.wisdomFlags(f) })
	s.points(cmd)
	s.measure(cmd, "cache")
	s.device(cmd)
	s.source(cmd)
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&format, "format", table.Formats()}, "format", "o", "how to print: "+strings.Join(table.Formats(), ", "))
	})
	completeGrid(cmd)
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		if err := s.resolve(p); err != nil {
			return misused(cmd, err)
		}
		s.Verified = true
		b, err := bench.Open(s.Options, p)
		if err != nil {
			return misused(cmd, err)
		}
		defer b.Close()
		s.Config.Grid.Impl = []string{auto.Name}
		q, err := b.Agenda(s.Config)
		if err != nil {
			return misused(cmd, err)
		}
		t := &table.Table{Columns: []table.Column{
			{Name: "point", Key: "point"}, {Name: "auto", Key: "impl"}, {Name: "match", Key: "match"}, {Name: "doublings", Key: "octaves", Right: true}, {Name: "why", Key: "why"},
		}}
		for _, part := range q.Parts {
			for _, at := range part.Points {
				pick := part.Specs[0]
				t.Rows = append(t.Rows, []table.Cell{
					table.Text(at.String()), {Text: pick.Choice.Impl, Value: pick.String()}, table.Text(pick.Choice.Match),
					table.Number(pick.Choice.Octaves, fmt.Sprintf("%.2g", pick.Choice.Octaves)), table.Text(pick.Choice.Why),
				})
			}
		}
		return t.Write(p.out, format, p.style())
	})
}

func wisdomMerge(p *program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "merge FILE... [flags]", Short: "Merge entries of other files; the newer entry wins",
		Example: `  rnnbench wisdom merge theirs.toml
  rnnbench wisdom merge a.toml b.toml --wisdom all.toml
  rnnbench wisdom merge - < theirs.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Misuse(errors.New("merge needs the files to merge"), "rnnbench wisdom merge --help")
			}
			return nil
		},
	}
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) { addWisdomFlag(fs, &file) })
	return p.verb(cmd, func(_ context.Context, _ *cobra.Command, args []string) error {
		_, path, err := readBook(file) // first, since standard input may take long
		if err != nil {
			return err
		}
		others := make([]*wisdom.Book, len(args))
		for i, name := range args {
			data, err := p.bytes(name)
			if err != nil {
				return err
			}
			if others[i], err = wisdom.Parse(data, name); err != nil {
				return exit.With(exit.Error, err, "")
			}
		}
		b, err := wisdom.Update(path, func(b *wisdom.Book) bool {
			for i, other := range others {
				taken, replaced := b.Merge(other)
				p.Note("%s: merged %d of %s; %d replaced older entries", args[i], taken, entries(len(other.Entries)), replaced)
			}
			return true
		})
		if err != nil {
			return err
		}
		p.Note("%s in %s", entries(len(b.Entries)), path)
		return nil
	})
}

// bytes reads a file, or standard input for -.
func (p *program) bytes(name string) ([]byte, error) {
	if name == "-" {
		return input.ReadText(p.in, tomlfile.MaxBytes, "standard input")
	}
	return input.ReadNamed(name, tomlfile.MaxBytes)
}

// An age is a flag's value: how long ago something was.
type age time.Duration

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}
func (a *age) Type() string { return "TIME" }
func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a time: write one with its unit, such as 720h", s)
	}
	if d <= 0 {
		return fmt.Errorf("%v must be more than 0: write a time such as 720h", d)
	}
	*a = age(d)
	return nil
}

func wisdomPrune(p *program) *cobra.Command {
	var file string
	var v wisdom.Sieve
	var dry bool
	cmd := &cobra.Command{
		Use: "prune [flags]", Short: "Remove old, stale or incomplete entries", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: `  rnnbench wisdom prune --stale
  rnnbench wisdom prune --older-than 2160h --dry-run
  rnnbench wisdom prune --device cpu-old-2t`,
	}
	addGroup(cmd, "Entries to remove (any of)", func(fs *pflag.FlagSet) {
		fs.BoolVar(&v.Stale, "stale", false, "entries from another version of rnnbench or, on this machine, of its driver and libraries")
		fs.BoolVar(&v.Incomplete, "incomplete", false, "entries whose search ran out of budget")
		fs.Var((*age)(&v.Older), "older-than", "entries older than `TIME`, such as 720h")
		fs.StringVar(&v.Device, "device", "", "entries of the device with this `KEY`")
	})
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.BoolVar(&dry, "dry-run", false, "print the entries without removing them")
		addWisdomFlag(fs, &file)
	})
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		if v == (wisdom.Sieve{}) {
			return misused(cmd, errors.New("no entries selected: add --stale, --incomplete, --older-than or --device"))
		}
		b, path, err := knownBook(file)
		if err != nil {
			return err
		}
		var here wisdom.Here
		if v.Stale {
			here = devicesHere(p, b)
		}
		removed := v.Sift(b, version(), here)
		if !dry && len(removed) > 0 {
			if b, err = wisdom.Update(path, func(b *wisdom.Book) bool { removed = v.Sift(b, version(), here); return len(removed) > 0 }); err != nil {
				return err
			}
		}
		if len(removed) > 0 {
			if err := entryTable(removed, here).Write(p.out, "table", p.style()); err != nil {
				return err
			}
		}
		if dry {
			p.Note("%s would be removed, %d would stay", entries(len(removed)), len(b.Entries))
			return nil
		}
		p.Note("%s removed, %d stay in %s", entries(len(removed)), len(b.Entries), path)
		return nil
	})
}

func wisdomExport(p *program) *cobra.Command {
	var file, to, device string
	cmd := &cobra.Command{
		Use: "export [flags]", Short: "Write entries to a file for other users", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: `  rnnbench wisdom export > wisdom.toml
  rnnbench wisdom export --device cpu-amd-epyc-2t -f ours.toml
  rnnbench wisdom export --wisdom old.toml | rnnbench wisdom merge -`,
	}
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.StringVar(&device, "device", "", "export only entries of the device with this `KEY`")
		fs.StringVarP(&to, "file", "f", "-", "output `FILE`; - for stdout")
		addWisdomFlag(fs, &file)
	})
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		b, path, err := knownBook(file)
		if err != nil {
			return err
		}
		var devices []string
		b.Entries = slices.DeleteFunc(b.Entries, func(e wisdom.Entry) bool {
			devices = append(devices, e.Device)
			return device != "" && e.Device != device
		})
		if len(b.Entries) == 0 && device != "" {
			slices.Sort(devices)
			return misused(cmd, grid.Unknown("device in "+filepath.Base(path), device, slices.Compact(devices)))
		}
		if to != "-" {
			if err := b.Write(to); err != nil {
				return err
			}
			p.Note("wrote %s", to)
			return nil
		}
		text, err := b.Format()
		if err != nil {
			return err
		}
		_, err = p.out.Write(text)
		return err
	})
}
