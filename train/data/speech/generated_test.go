package speech

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGenerated: an utterance is a function of seed and number. Held-out utterances are others, and so
// are those of another seed.
func TestGenerated(t *testing.T) {
	g := Generated{Seed: 1, Utterances: 50, Phonemes: 8}
	held, other := g, g
	held.Held, other.Seed = true, 2
	lengths := map[int]int{}
	for i := range g.Utterances {
		u, err := g.Utterance(i)
		if err != nil {
			t.Fatal(err)
		}
		lengths[len(u.Text)]++
		again, _ := g.Utterance(i)
		if u.Text != again.Text || !slices.Equal(u.Samples, again.Samples) {
			t.Errorf("utterance %d is another the second time", i)
		}
		for _, c := range []Corpus{held, other} {
			if o, _ := c.Utterance(i); slices.Equal(u.Samples, o.Samples) {
				t.Errorf("utterance %d is one of the held-out part or of another seed", i)
			}
		}
		loud := 0.0
		for _, v := range u.Samples {
			loud += float64(v) * float64(v)
		}
		if loud = math.Sqrt(loud / float64(len(u.Samples))); !(loud > 0.08 && loud < 0.14) {
			t.Errorf("utterance %d has a root mean square of %g", i, loud)
		}
		if _, err := letters.Labels(u.Text); err != nil {
			t.Error(err)
		}
	}
	if len(lengths) != 8 || lengths[0] > 0 {
		t.Errorf("lengths of transcripts occur so often: %v", lengths)
	}
}

// spelled returns the phonemes with these letters.
func spelled(text string) (said []phoneme) {
	for _, letter := range []byte(text) {
		said = append(said, phonemes[slices.IndexFunc(phonemes, func(p phoneme) bool { return p.letter == letter })])
	}
	return said
}

// TestSpelling: letters depend on neighbours.
func TestSpelling(t *testing.T) {
	for said, want := range map[string]string{
		"nan": "nan", "nfa": "mfa", "nk": "mk", "nki": "mci", "ki": "ci", "ka": "ka", "ek": "ek", "as": "as", "ys": "yz", "ss": "ss", "oss": "ozs", "k": "k",
	} {
		if got := spell(spelled(said)); got != want {
			t.Errorf("%s is written %s, not %s", said, got, want)
		}
	}
}

// TestPairsSoundAlike: phonemes of a pair differ by length alone, and other pairs are one phoneme.
func TestPairsSoundAlike(t *testing.T) {
	if n := letters.Classes() - 1; n != len(phonemes)+3 {
		t.Errorf("%d phonemes have %d letters", len(phonemes), n)
	}
	for _, pair := range []string{"ay", "ie", "uo"} {
		p := spelled(pair)
		short, long := p[0], p[1]
		if short.letter, short.seconds = long.letter, long.seconds; short != long || p[0].seconds*slow < long.seconds*fast {
			t.Errorf("%s differ otherwise than in a length that speakers share", pair)
		}
	}
}

// framed is a random utterance's frames in the middle of a phoneme, with the classes of their letters.
func framed(stream uint64) (frames [][]float32, classes []int) {
	draw := func() (*rand.Rand, []phoneme, speaker) {
		rng := rand.New(rand.NewPCG(9, stream))
		said := make([]phoneme, 8)
		for i := range said {
			said[i] = phonemes[rng.IntN(len(phonemes))]
		}
		return rng, said, newSpeaker(rng)
	}
	rng, said, who := draw()
	s := Spectrogram{Bands: 40, Hop: tick}
	all := s.Of(who.say(rng, said), voiceRate)
	labels, _ := letters.Labels(spell(said))
	rng, marked, who := draw()
	for i := range marked { // mixed where they meet
		marked[i].voiced = float64(i)
	}
	track := who.gestures(rng, marked)
	for t := range len(all) / s.Bands {
		g := track[t+2] // the middle of the frame
		if i := int(g.voiced); g.loud > 0.2 && g.voiced == float64(i) {
			frames, classes = append(frames, all[t*s.Bands:][:s.Bands]), append(classes, labels[i])
		}
	}
	return frames, classes
}

// TestFrameIsNotEnough: a letter whose frames have the mean that a single frame is nearest to is much
// better than chance, and far from right.
func TestFrameIsNotEnough(t *testing.T) {
	sums, counts := make([][]float64, letters.Classes()), make([]float64, letters.Classes())
	for u := range uint64(300) {
		frames, classes := framed(u)
		for k, f := range frames {
			c := classes[k]
			if sums[c] == nil {
				sums[c] = make([]float64, len(f))
			}
			for j, v := range f {
				sums[c][j] += float64(v)
			}
			counts[c]++
		}
	}
	nearest := func(f []float32) (best int) {
		least := math.Inf(1)
		for c, sum := range sums {
			d := 0.0
			for j := range sum {
				d += math.Pow(float64(f[j])-sum[j]/counts[c], 2)
			}
			if sum != nil && d < least {
				best, least = c, d
			}
		}
		return best
	}
	right, all := 0.0, 0.0
	for u := range uint64(100) {
		frames, classes := framed(1000 + u)
		for k, f := range frames {
			if all++; nearest(f) == classes[k] {
				right++
			}
		}
	}
	share := right / all
	t.Logf("%.0f %% of %.0f frames", 100*share, all)
	if !(share > 0.25 && share < 0.6) {
		t.Errorf("%.0f %% of %.0f frames give their letter away", 100*share, all)
	}
}

// BenchmarkUtterance times an utterance and its spectrogram.
func BenchmarkUtterance(b *testing.B) {
	g, s := Generated{Utterances: 1 << 30, Phonemes: 8}, Spectrogram{Bands: 40, Hop: 0.01}
	for i := 0; b.Loop(); i++ {
		u, _ := g.Utterance(i)
		s.Of(u.Samples, u.Rate)
	}
}

// TestResonator: noise through a resonator is loudest at its frequency.
func TestResonator(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r resonator
	r.tune(1225, 90)
	samples := make([]float32, voiceRate)
	for i := range samples {
		samples[i] = float32(r.next(rng.NormFloat64()))
	}
	s := Spectrogram{Bands: MostBands, Hop: 0.01}
	mean := make([]float64, s.Bands)
	for i, v := range s.Of(samples, voiceRate) {
		mean[i%s.Bands] += float64(v)
	}
	if band := slices.Index(mean, slices.Max(mean)); band < 23 || band > 25 {
		t.Errorf("it is loudest in the band from %d Hz on", band*highestHz/s.Bands)
	}
}

// TestFirstUtterances holds the first utterances to what they were: others would be another task.
func TestFirstUtterances(t *testing.T) {
	g := Generated{Seed: 1, Utterances: 4, Phonemes: 8}
	for i, want := range []string{
		"afaf 2440 [-0.18 0.32 1.44 1.01 -0.19 -0.81 -0.25 -0.20 -0.60 -0.73]",
		"y 2680 [1.02 2.80 2.71 1.72 0.13 -0.50 -0.53 -0.87 -0.16 -0.45]",
		"l 2280 [3.85 3.73 1.78 2.68 0.63 -0.76 -0.17 -0.44 -0.42 -0.26]",
		"fss 3440 [-0.69 -0.28 -0.10 -0.39 -0.66 -0.58 0.75 1.96 2.43 1.57]",
	} {
		u, err := g.Utterance(i)
		if err != nil {
			t.Fatal(err)
		}
		frames := Spectrogram{Bands: 10, Hop: 0.01}.Of(u.Samples, u.Rate)
		if got := fmt.Sprintf("%s %d %.2f", u.Text, len(u.Samples), frames[len(frames)/2/10*10:][:10]); got != want {
			t.Errorf("utterance %d is %s, not %s", i, got, want)
		}
	}
}
