package compare

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// A stretch is runs from..to of a line, as positions among its runs with a time. It differs in its mean
// from those before and after it.
type stretch struct {
	from, to int
	effect
}

// findSteps finds the steps of all lines. It divides a line where a stretch differs most from the rest,
// and then each part again (circular binary segmentation, Olshen et al. 2004). The test is Student's, with
// Bonferroni's correction for all stretches of all lines. The spread of a line is its own, or that of a
// typical line if that is larger. Runs that resemble their neighbours count as fewer.
func (h *History) findSteps(o Options) {
	lines := h.all()
	best, residual := make([]stretch, len(lines)), make([][]float64, len(lines))
	var spreads []float64
	for i, l := range lines {
		v := numbers(l.logs)
		best[i] = widest(v)
		residual[i] = best[i].residuals(v)
		if best[i].freedom > 0 && l != h.Common {
			spreads = append(spreads, best[i].sd)
		}
	}
	typical, alike := median(spreads), 0.0
	if n := len(h.Runs); n > 2*shortest {
		alike, _ = resemblance(residual, n)
	}
	for i, l := range lines {
		l.Spread, l.Visible = math.NaN(), math.Inf(1)
		if !(best[i].freedom > 0) {
			continue
		}
		n := noise{best[i].sd, best[i].freedom, alike}
		own, doubt := resemblance(residual[i:i+1], len(residual[i]))
		if l == h.Common { // no other line tells of it
			n.alike = own + doubt/2
		} else {
			n.sd, n.alike = max(n.sd, typical), max(alike, own-1.5*doubt)
		}
		n.alike = min(0.99, max(0, n.alike))
		l.search(n, o, len(lines))
	}
}

// A noise says how the runs of a line differ without a step: their standard deviation, its degrees of
// freedom, and the correlation of neighbours.
type noise struct{ sd, freedom, alike float64 }

// wider is by how much the standard error of a mean grows since neighbours resemble each other.
func (n noise) wider() float64 { return math.Sqrt((1 + n.alike) / (1 - n.alike)) }

// search finds the steps of one line among so many.
func (l *Line) search(n noise, o Options, lines int) {
	var at []int // positions of runs with a time
	for i, v := range l.logs {
		if !math.IsNaN(v) {
			at = append(at, i)
		}
	}
	v := numbers(l.logs)
	l.Spread = math.Expm1(n.sd)
	l.Drifts = n.wider() > 1.5
	tests := float64(max(1, stretches(len(v)))) * float64(lines)
	cuts := n.cuts(v, 0, tests, o)
	means, from := []float64{}, 0
	edges := append(append([]int{0}, cuts...), len(v))
	for i := range len(edges) - 1 {
		means = append(means, stat.Mean(v[edges[i]:edges[i+1]], nil))
	}
	for i, cut := range cuts {
		e := effect{size: means[i+1] - means[i], sd: n.sd * n.wider(), freedom: n.freedom, n: edges[i+1] - edges[i], m: edges[i+2] - edges[i+1]}
		l.Steps = append(l.Steps, Step{At: at[cut], Ratio: e.ratio(o.Level), P: min(1, e.p()*tests)})
		from = cut
	}
	half := len(v) / 2
	l.Visible = math.Inf(1)
	if half >= shortest {
		e := effect{sd: n.sd * n.wider(), n: half, m: len(v) - half}
		l.Visible = math.Expm1(max(o.effect(), (quantile(1-o.Alpha/tests/2, n.freedom)+power)*e.standard()))
	}
	l.late(v[from:], n, o, float64((shortest-1)*lines))
}

// late notes that the last runs differ, if they are too few for a step.
func (l *Line) late(v []float64, n noise, o Options, tests float64) {
	for last := shortest - 1; last > 0; last-- {
		first := len(v) - last
		if first < shortest {
			continue
		}
		e := effect{size: stat.Mean(v[first:], nil) - stat.Mean(v[:first], nil), sd: n.sd, freedom: n.freedom, n: first, m: last}
		if e.p()*tests < o.Alpha && math.Abs(e.size) >= o.effect() {
			l.Late = e.ratio(o.Level)
			return
		}
	}
}

// cuts returns where v is divided, as positions from base on.
func (n noise) cuts(v []float64, base int, tests float64, o Options) []int {
	s := widest(v)
	if math.IsNaN(s.size) || math.Abs(s.size) < o.effect() {
		return nil
	}
	s.sd, s.freedom = n.sd*n.wider(), n.freedom
	if s.p()*tests >= o.Alpha || !s.abrupt(v) {
		return nil
	}
	var list []int
	edges := []int{0, s.from, s.to, len(v)}
	for i := range len(edges) - 1 {
		if edges[i] == edges[i+1] {
			continue
		}
		if edges[i] > 0 {
			list = append(list, base+edges[i])
		}
		list = append(list, n.cuts(v[edges[i]:edges[i+1]], base+edges[i], tests, o)...)
	}
	return list
}

// stretches is how many stretches of n runs are tested.
func stretches(n int) (count int) {
	each(n, func(int, int) { count++ })
	return count
}

// each calls f with every stretch of n runs that, like the runs before and after it, has at least shortest
// runs or, before and after, none. A stretch ends with the last run or begins after the first.
func each(n int, f func(from, to int)) {
	for from := shortest; from+shortest <= n; from++ {
		for to := from + shortest; to <= n; to++ {
			if to == n || to+shortest <= n {
				f(from, to)
			}
		}
	}
}

// widest is the stretch that leaves the least variance in v. Its size is NaN if v is too short.
func widest(v []float64) stretch {
	n := len(v)
	best := stretch{effect: effect{size: math.NaN()}}
	sums := make([]float64, n+1)
	for i, x := range v {
		sums[i+1] = sums[i] + x
	}
	most := -1.0
	each(n, func(from, to int) {
		inside, m := sums[to]-sums[from], float64(to-from)
		size := inside/m - (sums[n]-inside)/(float64(n)-m)
		if between := size * size * m * (float64(n) - m) / float64(n); between > most {
			most = between
			best = stretch{from, to, effect{size: size, n: n - to + from, m: to - from}}
		}
	})
	if most < 0 {
		return best
	}
	sum := 0.0
	for _, u := range best.residuals(v) {
		sum += u * u
	}
	best.freedom = float64(n - 2)
	best.sd = max(finest, math.Sqrt(sum/best.freedom))
	return best
}

// clearly is how many times as large as other jumps the jump at a step is.
const clearly = 4

// abrupt reports whether runs of the stretch and others are nearer to the mean of their own, and whether v
// jumps at both ends of the stretch by far more than it does elsewhere. A machine of two states, or whose
// state wanders from run to run, has means that differ, and no such jump.
func (s stretch) abrupt(v []float64) bool {
	inside := stat.Mean(v[s.from:s.to], nil)
	rest, wrong := inside-s.size, 0
	for i, x := range v {
		if nearer := math.Abs(x-inside) < math.Abs(x-rest); nearer != (i >= s.from && i < s.to) {
			wrong++
		}
	}
	if wrong > len(v)/40 {
		return false
	}
	u := s.residuals(v)
	sum, count := 0.0, 0.0
	for at := shortest; at+shortest <= len(u); at++ {
		j := jump(u, at)
		sum, count = sum+j*j, count+1
	}
	for _, at := range []int{s.from, s.to} {
		if at < len(v) && math.Abs(jump(v, at)) < clearly*math.Sqrt(sum/count) {
			return false
		}
	}
	return true
}

// jump is by how much the next few runs from at on differ from the few before.
func jump(v []float64, at int) float64 {
	return stat.Mean(v[at:at+shortest], nil) - stat.Mean(v[at-shortest:at], nil)
}

// residuals returns v less the mean of the stretch, or of the rest.
func (s stretch) residuals(v []float64) []float64 {
	inside, sum := 0.0, 0.0
	for i, x := range v {
		if sum += x; i >= s.from && i < s.to {
			inside += x
		}
	}
	rest := (sum - inside) / float64(len(v)-s.to+s.from)
	list := make([]float64, len(v))
	for i, x := range v {
		if list[i] = x - rest; i >= s.from && i < s.to {
			list[i] = x - inside/float64(s.to-s.from)
		}
	}
	return list
}

// resemblance estimates the correlation of neighbouring runs from residuals of so many of them, with its
// standard error if there is one line. Each line lost the stretch that fits it best, which makes
// neighbours less alike. The two bounds are what simulated lines of independent runs and of random walks
// have; TestResemblance computes them again.
func resemblance(lines [][]float64, runs int) (rho, doubt float64) {
	n := float64(runs)
	independent, walk := -8.6/(n+17.5), 1-21/(n+9)
	sum, count := 0.0, 0.0
	for _, u := range lines {
		products, squares := 0.0, 0.0
		for i, x := range u {
			squares += x * x
			if i > 0 {
				products += u[i-1] * x
			}
		}
		if squares > 0 && len(u) > 2*shortest {
			sum += products / squares
			count++
		}
	}
	if count == 0 || runs <= 2*shortest {
		return 0, 0
	}
	return (sum/count - independent) / (walk - independent), 1 / math.Sqrt(n) / (walk - independent)
}
