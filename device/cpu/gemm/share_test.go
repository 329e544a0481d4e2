package gemm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// imbalance returns the work of the busiest worker over the mean, in whole tiles.
func (e *Engine) imbalance(p *Product, workers int) float64 {
	rows := tileHeight(e, p)
	most := 0
	for w := range workers {
		m0, m1, n0, n1 := e.Share(p, w, workers)
		most = max(most, ceil(m1-m0, rows)*ceil(n1-n0, width))
	}
	return float64(most*workers) / float64(ceil(p.M, rows)*ceil(p.N, width))
}

// TestWorkersAreEquallyBusy draws random shapes and shares each among numbers of workers with and
// without divisors. Shapes have at least eight tiles per worker. If operands are packed as the
// product goes, fewer bands save more than they cost.
func TestWorkersAreEquallyBusy(t *testing.T) {
	for name, e := range engines(t) {
		for _, workers := range []int{2, 3, 5, 6, 7, 12, 16, 24, 47, 48, 64} {
			for _, packed := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(34, uint64(workers)))
				size := func(least, most float64) int { return int(least * math.Pow(most/least, rng.Float64())) }
				sum, n, mean, worst := 0.0, 0, 1.2, 2.1
				if packed {
					mean, worst = 1.12, 1.7
				}
				for n < 100 {
					p := &Product{M: size(1, 5000), N: size(16, 6000), K: 512}
					if packed {
						p.Packed = []float32{}
					}
					if ceil(p.M, tileHeight(e, p))*ceil(p.N, width) < 8*workers {
						continue
					}
					ratio := e.imbalance(p, workers)
					if sum, n = sum+ratio, n+1; ratio > worst {
						t.Errorf("%s: %d workers, packed %v, %d×%d: the busiest has %.2f times the mean", name, workers, packed, p.M, p.N, ratio)
					}
				}
				if sum/float64(n) > mean {
					t.Errorf("%s: %d workers, packed %v: the busiest has %.2f times the mean, on average", name, workers, packed, sum/float64(n))
				}
			}
		}
	}
}
