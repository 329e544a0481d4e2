package cpu

// A barrier lets the parts of one operation wait for each other. Every part of
// a group waits equally often.
type barrier struct {
	pool    *pool
	arrived []counter // per part
}

func newBarrier(p *pool, parts int) *barrier {
	return &barrier{p, make([]counter, parts)}
}

// wait returns once all of the parts from … to have called it as often.
func (b *barrier) wait(part, from, to int) {
	n := b.arrived[part].Add(1)
	for q := from; q < to; q++ {
		if q != part {
			b.pool.await(&b.arrived[q], n)
		}
	}
}

// reset forgets the parts of a burst that failed.
func (b *barrier) reset() {
	for i := range b.arrived {
		b.arrived[i].Store(0)
	}
}
