// Package impl lists the techniques.
package impl

import (
	"slices"

	"rnnbench/impl/cudnn"
	"rnnbench/impl/cudnnstyle"
	"rnnbench/impl/naive"
	"rnnbench/impl/newton"
	"rnnbench/impl/persistent"
	"rnnbench/impl/scan"
	"rnnbench/impl/scc"
	"rnnbench/rnn"
)

// All lists every technique in the order of tables and legends.
func All() []rnn.Technique { return slices.Concat(Own(), Vendors()) }

// Own lists the techniques of this program.
func Own() []rnn.Technique { return append(Direct(), newton.Technique{}) }

// Direct lists the techniques of Own that give the answer in one pass: all but iterative ones. To add one,
// write its package and add its line here.
func Direct() []rnn.Technique {
	return []rnn.Technique{
		naive.Technique{},
		cudnnstyle.Technique{},
		persistent.Technique{},
		scan.Technique{},
		scc.Technique{},
	}
}

// Vendors lists the libraries of device makers. They are yardsticks: they run on those devices
// alone, and a tuner tries them only if asked. A device lists the libraries it has by these
// techniques' names.
func Vendors() []rnn.Technique { return []rnn.Technique{cudnn.Technique{}} }

// Lookup returns the technique of that name, or nil.
func Lookup(name string) rnn.Technique {
	for _, t := range All() {
		if t.Name() == name {
			return t
		}
	}
	return nil
}
