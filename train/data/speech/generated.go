package speech

import "math/rand/v2"

// Generated is a corpus of seeded utterances of a small language. Each has another speaker and
// 1 to Phonemes phonemes. Nothing is stored: an utterance is a function of the seed and its number.
type Generated struct {
	Seed       uint64
	Utterances int
	Phonemes   int  // of an utterance, at most
	Held       bool // the held-out part: other speakers who say other things
}

// heldOutStream separates the generators of held-out utterances from those of the others.
const heldOutStream = 1 << 63

// Len implements Corpus.
func (g Generated) Len() int { return g.Utterances }

// Alphabet implements Corpus.
func (g Generated) Alphabet() Alphabet { return letters }

// Longest implements Corpus: a phoneme is a letter.
func (g Generated) Longest() int { return g.Phonemes }

// Fits implements Corpus, by the longest utterance that can be.
func (g Generated) Fits(s Spectrogram, steps int) error {
	longest := 0.0
	for _, p := range phonemes {
		longest = max(longest, p.seconds)
	}
	seconds := 2*longestPause + float64(g.Phonemes)*(longest*slow*(1+unsteady)+tick)
	return s.fits("the longest utterance", s.Frames(int(seconds*voiceRate), voiceRate), nil, steps)
}

// Utterance implements Corpus.
func (g Generated) Utterance(i int) (Utterance, error) {
	stream := uint64(i)
	if g.Held {
		stream |= heldOutStream
	}
	rng := rand.New(rand.NewPCG(g.Seed, stream))
	said := make([]phoneme, 1+rng.IntN(g.Phonemes))
	for i := range said {
		said[i] = phonemes[rng.IntN(len(phonemes))]
	}
	s := newSpeaker(rng)
	return Utterance{Samples: s.say(rng, said), Rate: voiceRate, Text: spell(said)}, nil
}
