package data

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
)

// drawn is a task whose minibatches are drawn at random. Its position is their number.
type drawn struct {
	Options
	shape Shape
	at    uint64
	fill  func(rng *rand.Rand, o Options, x, target []float32)

	prepare func() error // nil: no work to do ahead
}

// Prepare implements Preparer.
func (d *drawn) Prepare() error {
	if d.prepare == nil {
		return nil
	}
	return d.prepare()
}

// heldOutStream separates the generators of held-out minibatches from those of the others.
const heldOutStream = 1 << 63

func (d *drawn) Shape() Shape { return d.shape }

func (d *drawn) Next(x, target []float32) {
	stream := d.at
	if d.Held {
		stream |= heldOutStream
	}
	d.at++
	clear(x)
	clear(target)
	d.fill(rand.New(rand.NewPCG(d.Seed, stream)), d.Options, x, target)
}

func (d *drawn) State() []byte { return binary.LittleEndian.AppendUint64(nil, d.at) }

func (d *drawn) Restore(state []byte) error {
	if len(state) != 8 {
		return errors.New("the position is not one of this task")
	}
	d.at = binary.LittleEndian.Uint64(state)
	return nil
}
