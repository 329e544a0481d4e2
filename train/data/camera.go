package data

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// pixels is the number of pixels along each side of N-MNIST's sensor.
const pixels = 34

// An Event says that the brightness of a pixel has risen or fallen by a threshold.
type Event struct {
	X, Y uint8
	On   bool   // risen
	Time uint32 // microseconds
}

// symbol is the event's number: falls by pixel, then rises by pixel.
func (e Event) symbol() uint16 {
	s := uint16(e.Y)*pixels + uint16(e.X)
	if e.On {
		s += pixels * pixels
	}
	return s
}

// A camera sees a digit and moves as N-MNIST's does: along a triangle, in three saccades.
type camera struct {
	threshold int32 // change in a pixel's inked dots that makes an event
}

// path is the corners of the triangle, in dots.
var path = [4][2]int{{0, 0}, {24, 48}, {48, 0}, {0, 0}}

// saccade is the length of a saccade in microseconds, and moves the number of its moves.
const saccade, moves = 100_000, 48

// record returns what the camera emits for a random digit. It depends on rng alone.
func (c camera) record(rng *rand.Rand) ([]Event, error) {
	all, err := fonts()
	if err != nil {
		return nil, err
	}
	font, digit, size := all[rng.IntN(len(all))], rng.IntN(10), fine*(22+rng.IntN(9))
	lines, err := outline(font, digit, size)
	if err != nil {
		return nil, err
	}
	const side = pixels*fine + moves
	place := func() int { return side/2 + rng.IntN(4*fine+1) - 2*fine }
	return c.pan(draw(lines, side, place(), place()), rng), nil
}

// pan moves the camera over p. Each pixel remembers the brightness at which it last emitted an event.
func (c camera) pan(p *picture, rng *rand.Rand) []Event {
	events := make([]Event, 0, 1<<13)
	var last, now [pixels * pixels]int32
	p.expose(path[0][0], path[0][1], 0, pixels, &last)
	for s := range len(path) - 1 {
		from, to := path[s], path[s+1]
		for m := 1; m <= moves; m++ {
			x, y := from[0]+(to[0]-from[0])*m/moves, from[1]+(to[1]-from[1])*m/moves
			begin, first := s*saccade+(m-1)*saccade/moves, len(events)
			above, below := p.inked(y)
			p.expose(x, y, above, below, &now)
			for i := above * pixels; i < below*pixels; i++ {
				for now[i]-last[i] >= c.threshold || last[i]-now[i] >= c.threshold {
					on := now[i] > last[i]
					last[i] += c.threshold
					if !on {
						last[i] -= 2 * c.threshold
					}
					at := begin + rng.IntN(saccade/moves)
					events = append(events, Event{uint8(i % pixels), uint8(i / pixels), on, uint32(at)})
				}
			}
			// A move ends before the next begins.
			slices.SortStableFunc(events[first:], func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
		}
	}
	return events
}

// expose counts the inked dots of each pixel in rows [above, below) of pixels. (x, y) is the first
// dot of the first pixel. All pixels lie within the picture.
func (p *picture) expose(x, y, above, below int, now *[pixels * pixels]int32) {
	for row := above; row < below; row++ {
		at := (row*fine+y)*(p.side+1) + x
		top, bottom := p.sums[at:][:pixels*fine+1], p.sums[at+fine*(p.side+1):][:pixels*fine+1]
		left, out := bottom[0]-top[0], now[row*pixels:][:pixels]
		for i := range out {
			right := bottom[(i+1)*fine] - top[(i+1)*fine]
			out[i], left = right-left, right
		}
	}
}

// inked returns the rows of pixels that have seen ink since the camera was one dot higher or lower.
// y is the first row of dots that they see.
func (p *picture) inked(y int) (above, below int) {
	return max(0, (p.top-y-1)/fine-1), min(pixels, max(0, p.bottom-y+1+fine)/fine+1)
}
