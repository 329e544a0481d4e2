package compare

import (
	"math"
	"slices"
)

// shift estimates by how much samples b lie above samples a, both sorted. It returns Hodges and
// Lehmann's estimate, the median of all differences of pairs, with the interval that belongs to Mann
// and Whitney's test. It also returns the p-value of that test. Test and interval agree: the interval
// at level 1-p begins at 0. The interval is unknown if there are too few samples.
func (t tables) shift(a, b []float64, level float64) (Interval, float64) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return unknown(), 1
	}
	diffs := make([]float64, 0, n*m)
	above := 0.0 // pairs with b above a, ties counted half
	for _, x := range a {
		for _, y := range b {
			diffs = append(diffs, y-x)
			switch {
			case y > x:
				above++
			case y == x:
				above += 0.5
			}
		}
	}
	slices.Sort(diffs)
	v := Interval{Value: (diffs[(n*m-1)/2] + diffs[n*m/2]) / 2, Lo: math.NaN(), Hi: math.NaN()}
	tails := t.tails(n, m)
	// With ties, round towards the middle, so that ties never make a difference look rarer.
	u := int(math.Ceil(math.Min(above, float64(n*m)-above)))
	p := min(1, 2*tails.upTo(u))
	if c := tails.below((1 - level) / 2); c > 0 {
		v.Lo, v.Hi = diffs[c-1], diffs[n*m-c]
	}
	return v, p
}

// tails is the distribution of the number of ordered pairs of n and m samples of one population, which
// Mann and Whitney's test uses.
type tails struct {
	n, m int
	sum  []float64 // sum[u]: probability of at most u; nil: use the normal approximation
}

// exact is the largest product of sample sizes whose distribution is computed exactly.
const exact = 2500

// tables caches distributions by sample sizes. A comparison uses few different ones, each thousands of
// times.
type tables map[[2]int][]float64

func (t tables) tails(n, m int) tails {
	if n*m > exact {
		return tails{n: n, m: m}
	}
	key := [2]int{min(n, m), max(n, m)}
	if t[key] == nil {
		t[key] = count(key[0], key[1])
	}
	return tails{n, m, t[key]}
}

// count returns, for each u, the probability of at most u ordered pairs among n and m samples. It counts
// orderings (Mann and Whitney 1947).
func count(n, m int) []float64 {
	// ways[i][u] counts the orderings of i of the n among the others so far that have u pairs.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for i := 1; i <= n; i++ {
		ways[i][0] = 1
	}
	for j := 1; j <= m; j++ {
		// The largest sample is the jth other and adds no pair, or is one of the i and adds j pairs.
		for i := 1; i <= n; i++ {
			for u := n * m; u >= j; u-- {
				ways[i][u] += ways[i-1][u-j]
			}
		}
	}
	sum := ways[n]
	for u := 1; u < len(sum); u++ {
		sum[u] += sum[u-1]
	}
	all := sum[len(sum)-1]
	for u := range sum {
		sum[u] /= all
	}
	return sum
}

// upTo is the probability of at most u ordered pairs.
func (t tails) upTo(u int) float64 {
	switch {
	case u < 0:
		return 0
	case t.sum != nil:
		return t.sum[min(u, len(t.sum)-1)]
	}
	n, m := float64(t.n), float64(t.m)
	sd := math.Sqrt(n * m * (n + m + 1) / 12)
	return math.Erfc((n*m/2-float64(u)-0.5)/sd/math.Sqrt2) / 2
}

// below is the largest c for which fewer than c ordered pairs have at most
// probability p.
func (t tails) below(p float64) int {
	lo, hi := 0, t.n*t.m/2+1 // upTo(lo-1) <= p < upTo(hi-1)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.upTo(mid-1) <= p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// holm corrects the p-values of changes for their number: the probability that any of them is below a
// level by chance is then at most that level (Holm 1979).
func holm(changes []*Change) {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *Change) int {
		switch {
		case a.P < b.P:
			return -1
		case a.P > b.P:
			return 1
		}
		return 0
	})
	least := 0.0
	for i, c := range sorted {
		least = max(least, min(1, c.P*float64(len(sorted)-i)))
		c.P = least
	}
}
