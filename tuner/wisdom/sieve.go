package wisdom

import (
	"slices"
	"time"
)

// A Sieve says which entries to remove: those that meet any of its conditions.
type Sieve struct {
	Device     string
	Older      time.Duration // older than this; 0: ignored
	Stale      bool          // found by another version
	Incomplete bool          // the search ran out of budget
}

// Sift removes entries from b and returns them. tool and here are the versions of the program and of the devices
// at hand, for Stale.
func (v Sieve) Sift(b *Book, tool string, here Here) (removed []Entry) {
	b.Entries = slices.DeleteFunc(b.Entries, func(e Entry) bool {
		out := v.Stale && len(e.Stale(tool, here[e.Device])) > 0 || v.Incomplete && !e.Complete || v.Device != "" && e.Device == v.Device ||
			v.Older > 0 && time.Since(e.Time) > v.Older
		if out {
			removed = append(removed, e)
		}
		return out
	})
	return removed
}
