package speech

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// labelsOf are the letters of text as labels, and a space as the blank.
func labelsOf(text string) (labels []int) {
	for _, letter := range text {
		labels = append(labels, max(0, int(letter)-'a'+1))
	}
	return labels
}

// TestCollapse: repeats count once unless a blank divides them.
func TestCollapse(t *testing.T) {
	for path, want := range map[string]string{
		"": "", " ": "", "   ": "", "a": "a", "aaa": "a", " a ": "a", "a a": "aa", "aab b c": "abbc", "  hhe l lllo ": "hello",
	} {
		if got := Collapse(labelsOf(path)); !slices.Equal(got, labelsOf(want)) {
			t.Errorf("%q becomes %v, not %q", path, got, want)
		}
	}
}

// TestGreedy: each utterance of a minibatch is decoded from its own rows, up to its length.
func TestGreedy(t *testing.T) {
	const classes, batch, steps = 4, 3, 6
	paths := []string{"aab bc", " c ccc", "bbbba "}
	rng := rand.New(rand.NewPCG(1, 2))
	scores := make([]float32, steps*batch*classes)
	for i := range scores {
		scores[i] = rng.Float32() - 3
	}
	for b, path := range paths {
		for step, c := range labelsOf(path) {
			scores[(step*batch+b)*classes+c] = -1.5
		}
	}
	for b, c := range []struct {
		frames int
		want   string
	}{{6, "abbc"}, {3, "c"}, {0, ""}} {
		if got := Greedy(scores, classes, batch, b, c.frames); !slices.Equal(got, labelsOf(c.want)) {
			t.Errorf("%q up to %d is decoded as %v, not %q", paths[b], c.frames, got, c.want)
		}
	}
}

// TestEditDistance: known distances, in both directions.
func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"intention", "execution", 5}, {"aaaa", "aa", 2}, {"saturday", "sunday", 3},
	} {
		a, b := labelsOf(c.a), labelsOf(c.b)
		if got, back := EditDistance(a, b), EditDistance(b, a); got != c.want || back != c.want {
			t.Errorf("from %q to %q it takes %d edits, and %d back, not %d", c.a, c.b, got, back, c.want)
		}
	}
}

// TestEditsReach: so many random edits are at least as many as the distance, which is a metric.
func TestEditsReach(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		a := make([]int, rng.IntN(9))
		for i := range a {
			a[i] = 1 + rng.IntN(3)
		}
		b, edits := slices.Clone(a), rng.IntN(6)
		for range edits {
			at := rng.IntN(len(b) + 1)
			switch kind := rng.IntN(3); {
			case kind == 0 || at == len(b):
				b = slices.Insert(b, at, 1+rng.IntN(3))
			case kind == 1:
				b = slices.Delete(b, at, at+1)
			default:
				b[at] = 1 + rng.IntN(3)
			}
		}
		d := EditDistance(a, b)
		if d > edits || (d == 0) != slices.Equal(a, b) || d < max(len(a)-len(b), len(b)-len(a)) {
			t.Errorf("from %v to %v after %d edits: %d", a, b, edits, d)
		}
	}
}

// TestErrorRate: edits count for each letter of all transcripts.
func TestErrorRate(t *testing.T) {
	decoded, right := [][]int{labelsOf("ab"), labelsOf(""), labelsOf("xxxx")}, [][]int{labelsOf("abcd"), labelsOf("abc"), labelsOf("x")}
	if got := ErrorRate(decoded, right); math.Abs(got-8.0/8) > 1e-12 {
		t.Errorf("%g, not 1", got)
	}
	if got := ErrorRate(right, right); got != 0 {
		t.Errorf("right transcripts have an error rate of %g", got)
	}
	if got := ErrorRate(nil, nil); got != 0 {
		t.Errorf("nothing has an error rate of %g", got)
	}
}
