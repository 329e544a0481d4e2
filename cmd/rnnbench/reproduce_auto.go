package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/tuner/plan"
	"rnnbench/tuner/wisdom"
)

// namedWisdomFlag adds --wisdom for commands whose auto follows a named file alone.
func namedWisdomFlag(s *settings, cmd *cobra.Command) {
	addGroup(cmd, "Techniques", func(fs *pflag.FlagSet) {
		fs.StringVar(&s.wisdom, "wisdom", "", "`FILE` with wisdom that auto follows (default: none; the cost model chooses)")
	})
}

// followNamed makes auto on b follow no wisdom unless the user names a file. With the user's own
// default file, nobody could repeat an experiment.
func followNamed(s *settings, b *bench) {
	if s.wisdom == "" {
		b.oracle.Read = func() (*wisdom.Book, error) { return &wisdom.Book{}, nil }
	}
}

// usesWisdom returns an error if --wisdom is given for a lone experiment that does not measure auto.
func usesWisdom(s *settings, q plan.Plan, id string, alone bool) error {
	if s.wisdom == "" || !alone || slices.Contains(q.Labels(), autoName) {
		return nil
	}
	return usage(fmt.Errorf("%s does not measure auto, so --wisdom has no effect: omit it", id), "rnnbench reproduce random-layers and deepbench-16bit take --wisdom; so does sweep")
}

// choose replaces auto at each point of a plan by its choice, and prints the choices.
func choose(p *program, b *bench, q plan.Plan) (plan.Plan, error) {
	defer busy(p, late, "choosing techniques")()
	decided, err := q.Decided(b.decide)
	if err == nil {
		tellChoices(p, decided.Specs())
	}
	return decided, err
}
