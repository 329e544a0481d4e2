package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/search"
	"rnnbench/tuner/tuning"
	"rnnbench/tuner/wisdom"
)

// tuneFrom searches among recorded runs.
func tuneFrom(ctx context.Context, p *program, cmd *cobra.Command, f *tuneFlags, o search.Options) error {
	if name := firstGiven(cmd, append(axis.Names(), "point", "preset", "zip", "impl", "skip-impl")); name != "" {
		return usage(fmt.Errorf("--%s selects points to measure, but --from searches recorded runs", name),
			"select records with --where, as in --where hidden=512 --where impl!=naive")
	}
	if name := firstGiven(cmd, []string{"device", "threads", "simd", "max-memory", "isolate", "cache", "data", "budget", "resume", "shard"}); name != "" {
		return misused(cmd, fmt.Errorf("--%s applies to measuring, but --from searches recorded runs: omit it", name))
	}
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if f.print {
		return config.Print(p.out, c)
	}
	s := &selection{settings: f.settings, where: c.Grid.Where}
	sets, recs, err := s.read(p, cmd, f.from)
	if err != nil {
		return err
	}
	if f.dryRun {
		return dryReplay(p, recs, f.format)
	}
	book, path, err := f.book()
	if err != nil {
		return err
	}
	if f.regret {
		far := &regret.List{}
		allowed := func(name string) bool { return f.vendor || !isVendor(name) }
		for _, group := range tuner.ByPoint(recs) {
			far.Recorded(regret.Policy{Book: book, Allowed: allowed, Usual: auto.Usual}, group)
		}
		return far.Table().Write(p.out, f.format, p.style())
	}
	o.Seed, o.Rounds = c.Measure.Seed, c.Measure.MaxRounds
	unchecked := tuning.Unverified(recs)
	if unchecked > 0 && unchecked < len(recs) {
		p.warn("%s of %s cannot win: unverified (--no-verify)", plural(unchecked, "record"), plural(len(recs), "record"))
	}
	read := &wisdom.Book{Entries: slices.Clone(book.Entries)}
	again := &tuning.Replay{Sets: sets, Book: book, Search: o}
	if err := again.Do(ctx, recs); err != nil {
		return err
	}
	if len(again.Found) == 0 {
		return noWinner(len(recs), unchecked)
	}
	if err := writeWinners(p, &again.Winners, nil, f.format); err != nil {
		return err
	}
	if path == "" {
		return nil
	}
	if err := read.Keep(path, again.Found...); err != nil {
		return err
	}
	p.note("wisdom saved to %s for --impl auto", path)
	return nil
}

// firstGiven returns the first of these flags that the user gave; "": none.
func firstGiven(cmd *cobra.Command, names []string) string {
	if i := slices.IndexFunc(names, cmd.Flags().Changed); i >= 0 {
		return names[i]
	}
	return ""
}

// dryReplay prints how many recorded candidates each point has.
func dryReplay(p *program, recs []record.Record, format string) error {
	list, candidates := tuning.Recorded(recs)
	p.note("%s: %s in %s", plural(list.Points(), "point"), plural(candidates, "candidate"), plural(len(recs), "record"))
	return writeWinners(p, list, nil, format)
}

// noWinner explains why none of n records can win, of which unchecked are unverified.
func noWinner(n, unchecked int) error {
	const hint = "tune accepts only verified records: measure again without --no-verify"
	switch unchecked {
	case 0:
		return &failure{exitError, fmt.Errorf("none of the %s succeeded", plural(n, "record")), ""}
	case n:
		return &failure{exitError, fmt.Errorf("no record can win: %s, none verified", plural(n, "record")), hint}
	}
	return &failure{exitError, fmt.Errorf("no record can win: %d of %d are unverified and the others failed", unchecked, n), hint}
}
