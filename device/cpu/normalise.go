package cpu

import (
	"math"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// A normalise is a schedule.Normalise. Each share has rows of its own.
type normalise struct {
	kernels             *simd.Kernels
	x, gain, out, stats matrix // stats has no data if nothing needs it
}

func (w *normalise) share(part, parts int, _ *scratch) {
	from, to := span(w.x.rows, 1, part, parts)
	for i := from; i < to; i++ {
		x, out, n := w.x.row(i), w.out.row(i), float32(w.x.cols)
		mean := w.kernels.Sum(x) / n
		for j, v := range x {
			out[j] = v - mean
		}
		by := float32(1 / math.Sqrt(float64(w.kernels.Squares(out)/n)+schedule.NormEpsilon))
		w.kernels.Scale(out, out, by)
		w.kernels.Mul(out, out, w.gain.row(0))
		if w.stats.rows > 0 {
			stats := w.stats.row(i)
			stats[0], stats[1] = mean, by
		}
	}
}

// A normaliseBackward is a schedule.NormaliseBackward. Each share has rows of its own.
type normaliseBackward struct {
	kernels                           *simd.Kernels
	dout, x, gain, stats, dx, toGains matrix
}

func (w *normaliseBackward) share(part, parts int, s *scratch) {
	from, to := span(w.x.rows, 1, part, parts)
	for i := from; i < to; i++ {
		w.row(i, s.part[:])
	}
}

// row computes row i. It forms the gradient of the normalised values piece by piece, in piece.
func (w *normaliseBackward) row(i int, piece []float32) {
	dout, x, gain, dx, toGains := w.dout.row(i), w.x.row(i), w.gain.row(0), w.dx.row(i), w.toGains.row(i)
	mean, by, n := w.stats.row(i)[0], w.stats.row(i)[1], float32(len(x))
	var sum, along float32
	for at := 0; at < len(x); at += len(piece) {
		end := min(at+len(piece), len(x))
		d, normal := piece[:end-at], toGains[at:end]
		for j, v := range x[at:end] {
			normal[j] = (v - mean) * by
		}
		w.kernels.Mul(d, dout[at:end], gain[at:end])
		sum += w.kernels.Sum(d)
		w.kernels.Mul(d, d, normal)
		along += w.kernels.Sum(d)
	}
	sum, along = sum/n, along/n
	for j, normal := range toGains {
		d := dout[j]
		dx[j] = by * (d*gain[j] - sum - normal*along)
		toGains[j] = d * normal
	}
}
