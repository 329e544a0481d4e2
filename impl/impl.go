// Package impl lists the techniques.
package impl

import (
	"rnnbench/impl/cudnnstyle"
	"rnnbench/impl/naive"
	"rnnbench/impl/persistent"
	"rnnbench/impl/scan"
	"rnnbench/impl/scc"
	"rnnbench/rnn"
)

// All lists every technique in the order of tables and legends. To add one,
// write its package and add its line here.
func All() []rnn.Technique {
	return []rnn.Technique{
		naive.Technique{},
		cudnnstyle.Technique{},
		persistent.Technique{},
		scan.Technique{},
		scc.Technique{},
	}
}

// Lookup returns the technique of that name, or nil.
func Lookup(name string) rnn.Technique {
	for _, t := range All() {
		if t.Name() == name {
			return t
		}
	}
	return nil
}
