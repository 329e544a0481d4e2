package schedule

import "slices"

// Pause divides a run: a program that runs in parts (see device.Hosted) ends one here, after all
// operations before it, and begins the next. Other programs do nothing.
type Pause struct{}

func (Pause) Name() string   { return "pause" }
func (Pause) Reads() []View  { return nil }
func (Pause) Writes() []View { return nil }
func (Pause) FLOPs() int64   { return 0 }
func (Pause) String() string { return "pause" }
func (Pause) check() error   { return nil }

// Pause divides the run before the last section, if Cut has begun any.
func (b *Builder) Pause() {
	if len(b.cuts) == 0 {
		return
	}
	b.s.Nodes = slices.Insert(b.s.Nodes, b.cuts[len(b.cuts)-1], Node{Op: Pause{}})
}

// Parts returns the number of parts of s, which Pause divides.
func (s *Schedule) Parts() int {
	n := 1
	for i := range s.Nodes {
		if _, ok := s.Nodes[i].Op.(Pause); ok {
			n++
		}
	}
	return n
}
