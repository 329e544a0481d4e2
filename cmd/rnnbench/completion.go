package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

func completionCommand(p *program) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	cmd := &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Print a script that completes commands, flags and their values",
		GroupID: "manage",
		Long: `Completion prints a script for a shell: bash, zsh, fish or powershell. With it, Tab
completes commands, flags, cells, techniques, knobs, axes, metrics, presets and runs.`,
		Example: `  source <(rnnbench completion bash)                                  # now
  rnnbench completion bash > ~/.local/share/bash-completion/completions/rnnbench
  rnnbench completion zsh > "${fpath[1]}/_rnnbench"
  rnnbench completion fish > ~/.config/fish/completions/rnnbench.fish`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return exit.Misuse(fmt.Errorf("completion takes the name of a shell: %s", strings.Join(shells, ", ")), "rnnbench completion --help")
			case !slices.Contains(shells, args[0]):
				return exit.Misuse(grid.Unknown("shell", args[0], shells), "rnnbench completion --help")
			}
			return nil
		},
	}
	return p.verb(cmd, func(_ context.Context, cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		switch args[0] {
		case "bash":
			return bashScript(root, p.out)
		case "zsh":
			return root.GenZshCompletion(p.out)
		case "fish":
			return root.GenFishCompletion(p.out, true)
		}
		return root.GenPowerShellCompletionWithDesc(p.out)
	})
}

// A completer completes the value of a flag.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completing is set while the command line is completed rather than run. Completers are
// registered only then: cobra keeps each one, with its commands, until the process ends.
var completing atomic.Bool

func completeFlag(cmd *cobra.Command, name string, f completer) {
	if completing.Load() && cmd.Flags().Lookup(name) != nil {
		_ = cmd.RegisterFlagCompletionFunc(name, f) // fails only if done twice
	}
}

// described completes the last word of a comma-separated list. words returns each candidate
// with its description. Words that the list has already are left out.
func described(words func() [][2]string) completer {
	return func(_ *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := start[:strings.LastIndexByte(start, ',')+1]
		var list []cobra.Completion
		for _, w := range words() {
			if !slices.Contains(strings.Split(before, ","), w[0]) {
				list = append(list, cobra.CompletionWithDesc(before+w[0], w[1]))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

func implCompletions(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	device := chosenDevice(cmd)
	if list, ok := settingCompletions(start, device); ok {
		return list, openEnded
	}
	return described(func() (list [][2]string) {
		techniques := impl.All()
		if device == "cpu" {
			techniques = impl.Own() // vendors' libraries run on their devices alone
		}
		for _, t := range techniques {
			list = append(list, [2]string{t.Name(), t.Doc()})
		}
		return append(list, [2]string{auto.Name, "fastest technique found by tuning"})
	})(cmd, args, start)
}

func metricCompletions(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return described(func() (list [][2]string) {
		for _, m := range quantity.Measures() {
			list = append(list, [2]string{m.Name, m.Title + ", " + m.Unit})
		}
		return list
	})(cmd, args, start)
}

func axisCompletions(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return described(func() (list [][2]string) {
		for _, a := range quantity.Axes() {
			list = append(list, [2]string{a.Name, a.Title})
		}
		for _, t := range impl.All() { // knobs are axes, too
			for _, k := range knobsOf(t.Name(), "") {
				if !slices.ContainsFunc(list, func(w [2]string) bool { return w[0] == k.Name }) {
					list = append(list, [2]string{k.Name, k.Doc})
				}
			}
		}
		return list
	})(cmd, args, start)
}

// networkCompletions completes --network with names, and with files that end in .toml.
func networkCompletions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var list []cobra.Completion
	for _, n := range config.Networks() {
		list = append(list, cobra.CompletionWithDesc(n.Name, n.Doc))
	}
	return list, cobra.ShellCompDirectiveDefault
}

// completeGrid completes the flags that say what is measured, how and where.
func completeGrid(cmd *cobra.Command) {
	completeFlag(cmd, "impl", implCompletions)
	completeFlag(cmd, "skip-impl", implCompletions)
	completeFlag(cmd, "baseline", implCompletions)
	completeFlag(cmd, "where", whereCompletions)
	completeFlag(cmd, "zip", zipCompletions)
	completeFlag(cmd, "point", pointCompletions)
	for _, a := range axis.All() {
		completeFlag(cmd, a.Name, completeAxis(a))
	}
	completeFlag(cmd, "preset", described(func() (list [][2]string) {
		for _, x := range grid.Presets() {
			list = append(list, [2]string{x.Name, x.Doc})
		}
		return list
	}))
	completeFlag(cmd, "network", networkCompletions)
	completeFlag(cmd, "device", deviceCompletions)
	completeFlag(cmd, "resume", completer(completeRuns))
	for _, k := range configKeys() {
		if len(k.Choices) > 0 {
			completeFlag(cmd, k.Name, cobra.FixedCompletions(k.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}
