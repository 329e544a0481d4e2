package compare

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
)

// mostFreedom is the degrees of freedom that stand for a known variance.
const mostFreedom = 1e6

// moderate combines the variance of each effect with those of the others, as Smyth (2004) does for
// thousands of genes on few arrays. It assumes that variances are drawn from a common distribution.
// The middle of that distribution counts as further observations of each variance: the more, the more
// alike the variances are. It returns the standard deviation of a typical effect.
//
// Few effects do not determine such a distribution. Then the larger of an effect's own and the median
// standard deviation counts, with the effect's own degrees of freedom. Effects that move together
// count as fewer: only independent of them count.
func moderate(list []effect, independent float64) float64 {
	var sds []float64
	for _, e := range list {
		if e.freedom > 0 {
			sds = append(sds, e.sd)
		}
	}
	if len(sds) == 0 {
		return 0
	}
	typical := median(sds)
	if len(sds) < fewestPoints {
		for i := range list {
			list[i].sd = max(list[i].sd, typical)
		}
		return typical
	}
	variance, freedom := prior(list)
	for i, e := range list {
		sum := freedom*variance + e.freedom*e.sd*e.sd
		list[i].freedom = min(freedom+e.freedom, max(1, independent)*e.freedom, mostFreedom)
		if e.freedom == 0 { // this point has one run per side
			list[i].freedom = min(freedom, independent)
		}
		list[i].sd = max(finest, math.Sqrt(sum/(freedom+e.freedom)))
	}
	return typical
}

// prior fits the common distribution of variances to the mean and the variance of their logarithms.
func prior(list []effect) (variance, freedom float64) {
	var logs []float64
	own := 0.0 // variance of the logs if all true variances were equal
	for _, e := range list {
		if h := e.freedom / 2; h > 0 {
			logs = append(logs, 2*math.Log(e.sd)-mathext.Digamma(h)+math.Log(h))
			own += trigamma(h)
		}
	}
	mean, spread := stat.MeanVariance(logs, nil)
	spread -= own / float64(len(logs))
	if spread <= trigamma(mostFreedom/2) {
		return math.Exp(mean), mostFreedom
	}
	h := inverseTrigamma(spread)
	return math.Exp(mean + mathext.Digamma(h) - math.Log(h)), 2 * h
}

func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// inverseTrigamma finds the argument at which the trigamma function, which is decreasing, is y.
func inverseTrigamma(y float64) float64 {
	lo, hi := 1e-8, float64(mostFreedom)
	for hi/lo > 1+1e-12 {
		if mid := math.Sqrt(lo * hi); trigamma(mid) > y {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
