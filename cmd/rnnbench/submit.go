package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/cluster"
	"rnnbench/internal/exit"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/grid"
)

func submitCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "submit slurm|kubernetes|status",
		Short:   "Have Slurm or Kubernetes measure the shards of a plan",
		GroupID: "measure",
		Long: `Submit hands a sweep, tune, train or reproduce to a scheduler: one job for each shard, and one
job that merges the shards afterwards. A submission has its own folder, which holds the
shards, what the jobs print, and what was submitted.

Jobs run the same binary as submit, or the image's. A shard refuses to run on a node with
another version of rnnbench, or with another device than the first shard's.

submit status prints which shards are done. With --retry it submits failed and missing
shards again; they continue from their finished records.`,
		Example: `  rnnbench submit slurm --shards 16 --partition gpu --gres gpu:1 --time 2h -- sweep --preset deepbench-infer --device cuda:0
  rnnbench submit slurm --shards 16 --dry-run -- tune --preset deepbench-infer
  rnnbench submit slurm --shards 8 --gres gpu:1 -- train --data text --cell lstm,gru -H 256:1024:x2 --device cuda:0
  rnnbench submit slurm --group h100=8:gpu:h100:1 --group a100=16:gpu:a100:1 -- reproduce diamos-fig3 --device cuda:0
  rnnbench submit kubernetes --shards 16 --image registry.example/rnnbench:1 --claim results -- sweep --preset quick
  rnnbench submit status out/nightly --retry`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Misuse(grid.Unknown("scheduler", args[0], commandNames(cmd)), "rnnbench submit --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(submitSlurm(p), submitKubernetes(p), submitStatus(p))
	return cmd
}

// submitFlags are the flags of every scheduler.
type submitFlags struct {
	settings
	name   string
	shards int
	groups []string
	time   string
	device string
	shared bool
	dryRun bool
	copy   bool // with Slurm only
}

// flags adds the flags of every scheduler. request shows the form of --group.
func (f *submitFlags) flags(cmd *cobra.Command, request string) {
	addGroup(cmd, "Jobs", func(fs *pflag.FlagSet) {
		fs.IntVar(&f.shards, "shards", 0, "divide the plan into `N` shards, a job each")
		fs.StringArrayVar(&f.groups, "group", nil, "instead of --shards: measure the whole plan on a kind of device, as `"+request+"`; repeatable")
		fs.StringVar(&f.time, "time", "", "`TIME` limit of a shard, such as 2h")
		fs.BoolVar(&f.shared, "shared", false, "let other jobs use a node at the same time")
		fs.StringVar(&f.device, "require-device", "", "refuse nodes whose device has another `KEY` (see rnnbench list devices; default: that of the first shard)")
	})
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.name, "name", "", "`NAME` of the submission and its folder (default: the command and the time)")
		f.add(fs, "out", "DIR", "")
		fs.BoolVar(&f.dryRun, "dry-run", false, "print what would be submitted, without submitting it")
	})
}

const submitHint = "rnnbench submit slurm --shards 16 -- sweep --preset quick"

// submitArgs returns an error unless all arguments follow --.
func submitArgs(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() != 0 || len(args) == 0 {
		return exit.Misuse(fmt.Errorf("submit %s takes its own flags and, after --, the command whose shards it submits", cmd.Name()), submitHint)
	}
	return nil
}

// reservedFlags lists flags that the submitted command must not have: submit sets them, or a shard
// does not take them.
var reservedFlags = []string{"--out", "--shard", "--resume", "--dry-run", "--print-config", "--profile", "--from", "--regret", "--help", "-h"}

// checkCommand checks the submitted command as a job would, as far as that needs no device.
func checkCommand(ctx context.Context, args []string) error {
	verbs := []string{"sweep", "tune", "train", "reproduce"}
	if !slices.Contains(verbs, args[0]) {
		return exit.Misuse(grid.Unknown("command to submit", args[0], verbs), submitHint)
	}
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); slices.Contains(reservedFlags, name) {
			return exit.Misuse(fmt.Errorf("the submitted %s does not take %s: submit sets the shard and its folder", args[0], name), "put --out before -- to name the folder of submissions")
		}
	}
	try := append(slices.Clone(args), "--shard", "1/1")
	if args[0] != "reproduce" {
		try = append(try, "--print-config") // opens no device
	}
	inner := &program{args: try, in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	root := inner.root()
	cmd, rest, err := root.Find(try)
	if err == nil {
		err = inner.checkHyphens(root)
	}
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil {
		return inner.flagError(cmd, err)
	}
	if err = cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	if args[0] == "reproduce" {
		if ids := cmd.Flags().Args(); len(ids) != 1 || ids[0] == "all" || ids[0] == "list" {
			return exit.Misuse(errors.New("a shard belongs to one experiment: name one"), "rnnbench reproduce")
		}
		return nil
	}
	var said bytes.Buffer
	if code := run(ctx, try, strings.NewReader(""), io.Discard, &said); code != exit.Done {
		return exit.Misuse(errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "rnnbench: ")), "")
	}
	return nil
}

// submission makes a submission from the flags and the command. It also returns its local folder.
func (f *submitFlags) submission(ctx context.Context, p *program, cmd *cobra.Command, args []string) (*cluster.Submission, string, error) {
	if err := f.resolve(p); err != nil {
		return nil, "", misused(cmd, err)
	}
	if err := checkCommand(ctx, args); err != nil {
		return nil, "", err
	}
	if f.name == "" {
		f.name = args[0] + "-" + strings.ToLower(p.start.UTC().Format("20060102-150405"))
	}
	work, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(f.Config.Dir, f.name)
	far, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	s := &cluster.Submission{
		Schema: cluster.Schema, Name: f.name, Scheduler: cmd.Name(), Created: p.start.UTC().Truncate(time.Second),
		Version: version(), Device: f.device, Dir: far, Work: work, Command: args,
	}
	switch {
	case f.groups != nil && (cmd.Flags().Changed("shards") || cmd.Flags().Changed("gres")):
		return nil, "", misused(cmd, errors.New("--group sets the shards and requests the devices: omit --shards and --gres"))
	case f.groups != nil && f.device != "":
		return nil, "", misused(cmd, errors.New("--require-device needs all shards on one kind of device: omit --group"))
	case f.groups == nil && !cmd.Flags().Changed("shards"):
		return nil, "", misused(cmd, errors.New("the number of shards is missing: add --shards N, or --group"))
	case f.groups == nil:
		s.Groups = []cluster.Group{{Shards: f.shards}}
	}
	for _, text := range f.groups {
		g, err := cluster.ParseGroup(text)
		if err != nil {
			return nil, "", misused(cmd, fmt.Errorf("--group: %w", err))
		}
		s.Groups = append(s.Groups, g)
	}
	return s, dir, misused(cmd, s.Check())
}

// submit submits s and records it in dir, or prints it for a dry run.
func (f *submitFlags) submit(p *program, cmd *cobra.Command, s *cluster.Submission, dir string) error {
	s.Rounds = []cluster.Round{{Time: s.Created, Jobs: s.All()}}
	by, err := s.Of()
	if err != nil {
		return err
	}
	texts, err := by.Texts(s, 0)
	if err != nil {
		return misused(cmd, err)
	}
	if f.dryRun {
		return cluster.WriteTexts(p.out, texts)
	}
	if err := installed(by); err != nil {
		return err
	}
	if exists(filepath.Join(dir, cluster.File)) {
		return exit.Misuse(fmt.Errorf("%s holds a submission already", dir), "use another --name, or rnnbench submit status "+dir+" --retry to continue it")
	}
	if err := s.Create(dir); err != nil {
		return exit.With(exit.Error, err, "set --out DIR to a writable folder")
	}
	if f.copy {
		if err := cluster.CopyProgram(s.Program, bench.WorkerName); err != nil {
			return exit.With(exit.Error, err, "")
		}
	}
	return start(p, s, dir)
}

// start submits the jobs of the last round, and prints their ids and how to watch them.
func start(p *program, s *cluster.Submission, dir string) error {
	if err := s.Submit(runner(p), dir); err != nil {
		return exit.With(exit.Error, err, "what was submitted is recorded: rnnbench submit status "+dir+" shows it, and --retry submits the rest")
	}
	r := s.Rounds[len(s.Rounds)-1]
	for _, j := range r.Jobs {
		of := ""
		if j.Group != "" {
			of = " of " + j.Group
		}
		p.Note("job %s: %s%s", j.ID, plural(len(j.Shards), "shard"), of)
	}
	p.Note("job %s merges them", r.Merge)
	p.Note("hint: rnnbench submit status %s shows their progress", dir)
	return nil
}

// installed returns an error if the scheduler's command is not installed.
func installed(by cluster.Scheduler) error {
	if _, err := exec.LookPath(by.Command()); err != nil {
		return exit.With(exit.Error, fmt.Errorf("%s is not installed here: submit where the scheduler's commands are", by.Command()), "--dry-run prints what would be submitted")
	}
	return nil
}

// runner runs the commands of a scheduler.
func runner(p *program) cluster.Runner {
	return func(name string, args ...string) (string, error) {
		p.log.Debug("run", "command", name, "args", args)
		return cluster.Command(name, args...)
	}
}
