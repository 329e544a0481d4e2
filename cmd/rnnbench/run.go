package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/internal/safe"
	"rnnbench/plots/table"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/progress"
)

// A program is one invocation.
type program struct {
	in       io.Reader
	out, err io.Writer
	args     []string

	quiet, verbose, ascii bool
	color, progress       string
	start                 time.Time
	silence               silence
	log                   *slog.Logger

	unwritten error // the error of writing help, which cobra cannot return

	ran bool // a command began, so later errors are not usage errors by default
}

// process is run with this process's streams. A signal ends it with a message from the first moment on.
func process(args []string) int {
	if err := lowLimit(); err != nil {
		return newProgram(args, os.Stdin, os.Stdout, os.Stderr).report(&exit.Failure{Code: exit.Error, Err: err})
	}
	p := newProgram(args, os.Stdin, os.Stdout, stderr())
	p.silence.most = mostSilence
	listen(func() { os.Exit(p.report(context.Canceled)) })
	return execute(context.Background(), p)
}

// run executes one command line and returns the exit code. Data goes to stdout,
// everything else to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, newProgram(args, stdin, stdout, stderr))
}

func newProgram(args []string, stdin io.Reader, stdout, stderr io.Writer) *program {
	return &program{in: stdin, out: stdout, err: stderr, args: bareResume(args), log: slog.New(slog.DiscardHandler), start: time.Now()}
}

// execute executes p's command line and returns the exit code.
func execute(ctx context.Context, p *program) int {
	args := p.args
	completing.Store(len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd))
	root := p.root()
	root.SetArgs(args)
	err := p.checkHyphens(root)
	if err == nil {
		err = errors.Join(root.ExecuteContext(ctx), p.unwritten)
	}
	return p.report(err)
}

// report prints what went wrong and returns the exit code.
func (p *program) report(err error) int {
	if err == nil {
		return exit.Done
	}
	var f *exit.Failure
	if !errors.As(err, &f) {
		f = &exit.Failure{Code: exit.Error, Err: err}
		if errors.Is(err, context.Canceled) {
			f = &exit.Failure{Code: exit.Interrupted, Err: errors.New("interrupted")}
		} else if !p.ran {
			f.Code, f.Hint = exit.Usage, "rnnbench --help"
		}
	}
	if p.silence.end(); p.progress == progressJSON {
		p.sender().Send(progress.Message{Event: "error", Text: f.Err.Error(), Hint: f.Hint, Exit: f.Code})
		return f.Code
	}
	p.tell(fmt.Sprintf("rnnbench: %v", f.Err))
	if f.Hint != "" {
		p.tell("hint: " + f.Hint)
	}
	return f.Code
}

// tell writes a line to stderr, wrapped where that is a terminal.
func (p *program) tell(line string) {
	p.silence.end()
	printLine(p, line)
}

func printLine(p *program, line string) {
	line = safe.Text(line)
	if p.ascii {
		line = table.ASCII(line)
	}
	for s := range strings.SplitSeq(line, "\n") {
		fmt.Fprintln(p.err, table.Sentence(s, fits(p, p.err), 4))
	}
}

// Note prints a message that is not data to stderr, unless --quiet is set.
func (p *program) Note(format string, args ...any) {
	if !p.quiet {
		p.silence.end()
		say(p, fmt.Sprintf(format, args...))
	}
}

// say prints a message, as text or for other programs.
func say(p *program, line string) {
	if p.progress == progressJSON {
		p.sender().Text(line)
	} else {
		printLine(p, line)
	}
}

// Warn prints a note about something that may spoil the result.
func (p *program) Warn(format string, args ...any) { p.Note("warning: "+format, args...) }

// Logger returns where each step is logged.
func (p *program) Logger() *slog.Logger { return p.log }

// root builds the command tree.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rnnbench",
		Short: "Measure ways to run recurrent neural networks",
		Long: `Rnnbench measures ways to run recurrent neural networks: techniques from papers,
checked against a float64 reference and timed in interleaved rounds.

Exit codes:
  0    success
  1    error, or no point succeeded
  2    invalid command line or configuration
  3    some points failed, gave a wrong answer, or are missing from a merge
  4    a verdict named by --fail-on was found, or nothing to compare
  5    device not available
  130  interrupted; all finished records are saved`,
		Example: `  rnnbench sweep --preset quick                      # a first look, a minute
  rnnbench sweep --cell lstm -H 256:1024:x2 -B 1,32  # your own grid
  rnnbench show                                      # print the latest run
  rnnbench plot --x hidden -f lstm.svg               # draw a figure
  rnnbench list presets                              # list named sets of points`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          p.commandArg,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			if p.verbose {
				p.silence.end()
				o := &slog.HandlerOptions{Level: slog.LevelDebug}
				p.log = slog.New(slog.NewTextHandler(p.err, o))
				if p.progress == progressJSON {
					p.log = slog.New(slog.NewJSONHandler(p.err, o))
				}
			}
		},
	}
	root.SetVersionTemplate("rnnbench {{.Version}}\n")
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(p.flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(p, cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(p, cmd); return nil })
	root.PersistentFlags().AddFlagSet(p.globalFlags())
	root.AddGroup(
		&cobra.Group{ID: "measure", Title: "Measure:"},
		&cobra.Group{ID: "analyse", Title: "Analyse:"},
		&cobra.Group{ID: "inside", Title: "Inspect:"},
		&cobra.Group{ID: "manage", Title: "Manage:"},
	)
	root.AddCommand(
		adviseCommand(p), sweepCommand(p), tuneCommand(p), trainCommand(p), reproduceCommand(p), submitCommand(p), mergeCommand(p), verifyCommand(p),
		compareCommand(p), ciCommand(p), historyCommand(p), bisectCommand(p), showCommand(p), plotCommand(p), reportCommand(p), siteCommand(p),
		explainCommand(p), graphCommand(p), modelCommand(p), exportCommand(p),
		wisdomCommand(p), listCommand(p), doctorCommand(p), versionCommand(p), completionCommand(p), workerCommand(p),
	)
	root.SetHelpCommand(helpCommand(p, root))
	root.SetHelpCommandGroupID("manage")
	return root
}

// verb sets do as the work of cmd. Once do begins, errors are not usage errors by default.
func (p *program) verb(cmd *cobra.Command, do func(ctx context.Context, cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd.Flags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(choice); ok {
			completeFlag(cmd, f.Name, cobra.FixedCompletions(c.choices, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.ran = true
		defer breakSilence(p, cmd)()
		return do(cmd.Context(), cmd, args)
	}
	return cmd
}

// commandArg returns an error for a word that is not a command.
func (p *program) commandArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Misuse(grid.Unknown("command", args[0], commandNames(cmd.Root())), "rnnbench --help")
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// noArgs refuses stray words, which are often an axis without its hyphens.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%s takes flags only, but got the argument %q", cmd.Name(), args[0])
	if name, value, ok := strings.Cut(args[0], "="); ok {
		if cmd.Flags().Lookup(name) != nil {
			return exit.Misuse(fmt.Errorf("%w: did you mean --%s %s?", err, name, value), "rnnbench "+cmd.Name()+" --help")
		}
		if _, bad := grid.ParsePoint(args[0]); bad == nil && cmd.Flags().Lookup("point") != nil {
			return exit.Misuse(fmt.Errorf("%w: did you mean --point %s?", err, args[0]), "rnnbench "+cmd.Name()+" --help")
		}
	} else if slices.Contains(axis.Names(), args[0]) && cmd.Flags().Lookup(args[0]) != nil {
		return exit.Misuse(fmt.Errorf("%w: did you mean --%s?", err, args[0]), "rnnbench "+cmd.Name()+" --help")
	} else if flag := flagOf(args[0]); flag != "" && cmd.Flags().Lookup(flag) != nil {
		return exit.Misuse(fmt.Errorf("%w: did you mean --%s %s?", err, flag, args[0]), "rnnbench "+cmd.Name()+" --help")
	}
	return exit.Misuse(err, "rnnbench "+cmd.Name()+" --help; separate list items by commas, without spaces")
}

// flagOf returns the flag whose value a bare word probably is; "": none.
func flagOf(word string) string {
	isPreset := func(x grid.Preset) bool { return x.Name == word }
	switch {
	case cell.Lookup(word) != nil:
		return "cell"
	case impl.Lookup(word) != nil || word == auto.Name:
		return "impl"
	case slices.ContainsFunc(grid.Presets(), isPreset):
		return "preset"
	}
	return ""
}
