package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/tuner/grid"
)

// groupKey is the annotation that puts a flag under a heading of the help.
const groupKey = "rnnbench_group"

// addGroup adds flags to cmd under a heading of its help. They reject an empty text.
func addGroup(cmd *cobra.Command, heading string, define func(f *pflag.FlagSet)) {
	cmd.Flags().AddFlagSet(grouped(heading, define))
}

func grouped(heading string, define func(f *pflag.FlagSet)) *pflag.FlagSet {
	f := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	f.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[groupKey] = []string{heading}
		switch f.Value.Type() {
		case "stringSlice", "stringArray":
			f.DefValue = "" // pflag prints [] for a type that it does not know
			fallthrough
		case "string":
			f.Value = filled{f.Value}
		}
	})
	return f
}

// help writes what a command does, its examples and its flags by group.
func help(p *program, cmd *cobra.Command) {
	w, width := new(strings.Builder), p.width(cmd.OutOrStdout())
	defer func() {
		if _, err := io.WriteString(letters(p, cmd.OutOrStdout()), w.String()); err != nil {
			p.unwritten = &exit.Failure{Code: exit.Error, Err: err}
		}
	}()
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", flow(strings.TrimSpace(long), width))
	if cmd == cmd.Root() {
		fmt.Fprintf(w, "  rnnbench COMMAND [flags]\n")
	} else if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", commandLines(cmd.Example, width))
	}
	if subs := visible(cmd); len(subs) > 0 {
		longest := 0
		for _, c := range subs {
			longest = max(longest, len(c.Name()))
		}
		line := func(c *cobra.Command) {
			fmt.Fprintln(w, table.Paragraph(fmt.Sprintf("  %-*s  %s", longest, c.Name(), c.Short), width, longest+4))
		}
		for _, g := range cmd.Groups() {
			fmt.Fprintf(w, "\n%s\n", g.Title)
			for _, c := range subs {
				if c.GroupID == g.ID {
					line(c)
				}
			}
		}
		if len(cmd.Groups()) == 0 {
			fmt.Fprintf(w, "\nCommands:\n")
			for _, c := range subs {
				line(c)
			}
		}
	}
	flagGroups(w, width, cmd)
	if cmd == cmd.Root() {
		fmt.Fprintf(w, "\nRun rnnbench COMMAND --help for details of a command.\n")
	}
}

// visible lists the commands under cmd in the order of rank.
func visible(cmd *cobra.Command) []*cobra.Command {
	list := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
	slices.SortStableFunc(list, func(a, b *cobra.Command) int { return rank(a) - rank(b) })
	return list
}

// rank returns a command's place in the help: the order of a session, not cobra's alphabetical
// one.
func rank(c *cobra.Command) int {
	order := []string{"sweep", "tune", "reproduce", "submit", "merge", "verify", "show", "compare", "plot", "report", "site", "explain", "graph", "model", "export", "wisdom", "list", "doctor", "version", "completion"}
	if i := slices.Index(order, c.Name()); i >= 0 && c.CommandPath() != "rnnbench wisdom merge" {
		return i
	}
	return len(order)
}

// flagGroups writes the flags of cmd under their headings.
func flagGroups(w io.Writer, width int, cmd *cobra.Command) {
	const other = "Other"
	var order []string
	groups := map[string]*pflag.FlagSet{}
	add := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		heading := other
		if a := f.Annotations[groupKey]; len(a) > 0 {
			heading = a[0]
		}
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			groups[heading].SortFlags = false
			order = append(order, heading)
		}
		if groups[heading].Lookup(f.Name) == nil {
			groups[heading].AddFlag(f)
		}
	}
	cmd.LocalFlags().SortFlags = false
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if i := slices.Index(order, other); i >= 0 {
		order = append(slices.Delete(order, i, i+1), other)
	}
	for _, heading := range order {
		fmt.Fprintf(w, "\n%s:\n%s", heading, groups[heading].FlagUsagesWrapped(width))
	}
}

// helpCommand is "rnnbench help COMMAND".
func helpCommand(p *program, root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Example: `  rnnbench help
  rnnbench help sweep
  rnnbench help completion bash`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return commandNames(root), cobra.ShellCompDirectiveNoFileComp
		},
		GroupID: "manage",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 && about == root {
			return exit.Misuse(grid.Unknown("command", args[0], commandNames(root)), "rnnbench --help")
		}
		about.InitDefaultHelpFlag()
		about.InitDefaultVersionFlag()
		help(p, about)
		return nil
	}
	return cmd
}
