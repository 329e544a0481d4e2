package speech

import (
	"math"
	"math/rand/v2"
)

// voiceRate is the rate of generated utterances, in samples a second.
const voiceRate = 8000

// A speaker says phonemes in a way of his own.
type speaker struct {
	pitch float64 // of the voice, in Hz
	tract float64 // by what factor formants are higher than usual
	tempo float64 // by what factor phonemes are longer than usual
	noise float64 // behind the speech, relative to its root mean square
}

// Bounds of a speaker, and of how far a phoneme's length is off. A slow speaker's short vowels are
// longer than a fast one's long ones.
const (
	lowest, highest = 90, 240   // pitch
	small, large    = 0.88, 1.2 // tract
	fast, slow      = 0.65, 1.4 // tempo
	unsteady        = 0.12      // of a length
	longestPause    = 0.12      // seconds of silence at either end
)

// newSpeaker draws a speaker. Noise lies 5 to 17 dB below speech.
func newSpeaker(rng *rand.Rand) speaker {
	between := func(a, b float64) float64 { return a + (b-a)*rng.Float64() }
	return speaker{between(lowest, highest), between(small, large), between(fast, slow), math.Pow(10, -between(5, 17)/20)}
}

// A gesture is the state of the mouth during a tick.
type gesture struct{ first, second, voiced, loud float64 }

// Formants glide for glides ticks, and loudness for swells. Each phoneme begins with a closure.
const (
	tick    = 0.005 // seconds
	glides  = 6
	swells  = 2
	closure = 3
)

// gestures returns the state of the mouth while s says phonemes, tick by tick. Each is a mean over
// the ticks around it, so phonemes take on some of their neighbours' sound, short ones the most.
func (s speaker) gestures(rng *rand.Rand, said []phoneme) []gesture {
	pause := func(like phoneme) []gesture {
		quiet := gesture{first: like.first * s.tract, second: like.second * s.tract, voiced: like.voiced}
		all := make([]gesture, int((0.3+0.7*rng.Float64())*longestPause/tick))
		for i := range all {
			all[i] = quiet
		}
		return all
	}
	track := pause(said[0])
	for _, p := range said {
		g := gesture{p.first * s.tract, p.second * s.tract, p.voiced, p.loud}
		length := p.seconds * s.tempo * (1 + unsteady*(2*rng.Float64()-1))
		for i := range int(math.Round(length / tick)) {
			if g.loud = p.loud; i < closure {
				g.loud = 0
			}
			track = append(track, g)
		}
	}
	track = append(track, pause(said[len(said)-1])...)
	return smooth(track)
}

// smooth lets gestures glide.
func smooth(track []gesture) []gesture {
	mean := func(at, around int, of func(gesture) float64) float64 {
		from, to := max(0, at-around), min(len(track), at+around+1)
		sum := 0.0
		for _, g := range track[from:to] {
			sum += of(g)
		}
		return sum / float64(to-from)
	}
	out := make([]gesture, len(track))
	for i := range track {
		out[i] = gesture{
			mean(i, glides, func(g gesture) float64 { return g.first }), mean(i, glides, func(g gesture) float64 { return g.second }),
			mean(i, swells, func(g gesture) float64 { return g.voiced }), mean(i, swells, func(g gesture) float64 { return g.loud }),
		}
	}
	return out
}

// A resonator is a digital filter of two poles, as in the synthesiser of Klatt 1980, from which formants
// are made.
type resonator struct{ a, b, c, last, before float64 }

// tune sets the resonance and its width, in Hz.
func (r *resonator) tune(frequency, width float64) {
	r.c = -math.Exp(-2 * math.Pi * width / voiceRate)
	r.b = 2 * math.Exp(-math.Pi*width/voiceRate) * math.Cos(2*math.Pi*frequency/voiceRate)
	r.a = 1 - r.b - r.c
}

func (r *resonator) next(x float64) float64 {
	y := r.a*x + r.b*r.last + r.c*r.before
	r.last, r.before = y, r.last
	return y
}

// say is the sound of s saying phonemes: pulses of the voice and breath, through two resonators.
func (s speaker) say(rng *rand.Rand, said []phoneme) []float32 {
	track := s.gestures(rng, said)
	const each = voiceRate * tick
	samples := make([]float64, len(track)*each)
	var first, second resonator
	phase, power, fall := 0.0, 0.0, 0.3*rng.Float64()
	for i := range samples {
		g := track[i/each]
		if i%each == 0 {
			first.tune(g.first, 90)
			second.tune(g.second, 140)
		}
		source := 0.25 * (1 - g.voiced) * rng.NormFloat64()
		if phase += s.pitch * (1 - fall*float64(i)/float64(len(samples))) / voiceRate; phase >= 1 {
			phase--
			source += 4 * g.voiced
		}
		samples[i] = second.next(first.next(source * g.loud))
		power += samples[i] * samples[i]
	}
	rms := math.Sqrt(power / float64(len(samples)))
	out := make([]float32, len(samples))
	for i, v := range samples {
		out[i] = float32(max(-1, min(1, 0.1*(v/rms+s.noise*rng.NormFloat64()))))
	}
	return out
}
