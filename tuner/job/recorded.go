package job

import (
	"context"
	"fmt"
	"slices"

	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/campaign"
	"rnnbench/tuner/config"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/wisdom"
)

// A Recorded searches among recorded runs instead of measuring.
type Recorded struct {
	Tuning
	Measure  config.Measure
	Wisdom   string // file
	ReadOnly bool   // it is not written
	Vendor   bool   // auto may choose the vendor's library
}

// Run searches the records of sets. print prints the winners, or the table of Regret.
func (o Recorded) Run(ctx context.Context, sets []record.Set, recs []record.Record, tell Teller, print func(*campaign.Winners, *table.Table) error) error {
	book, path, err := o.Book(o.Wisdom, o.ReadOnly)
	if err != nil {
		return err
	}
	if o.Regret {
		far := &regret.List{}
		allowed := func(name string) bool { return o.Vendor || !bench.IsVendor(name) }
		for _, group := range tuner.ByPoint(recs) {
			far.Recorded(regret.Policy{Book: book, Allowed: allowed, Usual: auto.Usual}, group)
		}
		return print(nil, far.Table())
	}
	o.Search.Seed, o.Search.Rounds = o.Measure.Seed, o.Measure.MaxRounds
	unchecked := campaign.Unverified(recs)
	if unchecked > 0 && unchecked < len(recs) {
		tell.Warn("%s of %s cannot win: unverified (--no-verify)", quantity.Plural(unchecked, "record"), quantity.Plural(len(recs), "record"))
	}
	read := &wisdom.Book{Entries: slices.Clone(book.Entries)}
	again := &campaign.Replay{Sets: sets, Book: book, Search: o.Search}
	if err := again.Do(ctx, recs); err != nil {
		return err
	}
	if len(again.Found) == 0 {
		return noWinner(len(recs), unchecked)
	}
	if err := print(&again.Winners, nil); err != nil || path == "" {
		return err
	}
	if err := read.Keep(path, again.Found...); err != nil {
		return err
	}
	tell.Note("wisdom saved to %s for --impl auto", path)
	return nil
}

// noWinner explains why none of n records can win, of which unchecked are unverified.
func noWinner(n, unchecked int) error {
	const hint = "tune accepts only verified records: measure again without --no-verify"
	switch unchecked {
	case 0:
		return exit.With(exit.Error, fmt.Errorf("none of the %s succeeded", quantity.Plural(n, "record")), "")
	case n:
		return exit.With(exit.Error, fmt.Errorf("no record can win: %s, none verified", quantity.Plural(n, "record")), hint)
	}
	return exit.With(exit.Error, fmt.Errorf("no record can win: %d of %d are unverified and the others failed", unchecked, n), hint)
}
