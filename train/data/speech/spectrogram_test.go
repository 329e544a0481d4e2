package speech

import (
	"math"
	"slices"
	"testing"
)

// tone is a second of a sine with a little noise floor.
func tone(hz float64, rate int) []float32 {
	samples := make([]float32, rate)
	for i := range samples {
		samples[i] = float32(0.5 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return samples
}

// TestBands: a tone is loudest in its own band, at any rate and number of bands.
func TestBands(t *testing.T) {
	for _, rate := range []int{8000, 11025, 12345, 16000, 22050, 44100, 48000} {
		for _, bands := range []int{1, 13, 40, MostBands} {
			s := Spectrogram{Bands: bands, Hop: 0.01}
			for _, hz := range []float64{330, 1010, 2990, 3790} {
				frames := s.Of(tone(hz, rate), rate)
				if len(frames) != 99*bands {
					t.Fatalf("%d Hz: %d frames of a second", rate, len(frames)/bands)
				}
				row := frames[50*bands:][:bands]
				band, want := slices.Index(row, slices.Max(row)), hz/highestHz*float64(bands)
				if math.Abs(float64(band)+0.5-want) > 0.5+0.02*float64(bands)/2 {
					t.Errorf("%g Hz at a rate of %d is loudest in band %d of %d", hz, rate, band, bands)
				}
			}
		}
	}
}

// TestFrames: every sound has a frame, and a hop more of sound a frame more.
func TestFrames(t *testing.T) {
	s := Spectrogram{Bands: 4, Hop: 0.01}
	for samples, want := range map[int]int{1: 1, 159: 1, 160: 1, 239: 1, 240: 2, 320: 3, 8000: 99} {
		if got := s.Frames(samples, 8000); got != want {
			t.Errorf("%d samples have %d frames, not %d", samples, got, want)
		}
		for _, v := range s.Of(make([]float32, samples), 8000) {
			if math.Abs(float64(v)) > 1e-3 {
				t.Fatalf("silence of %d samples has values of %g", samples, v)
			}
		}
	}
}

// TestNormalised: the mean of an utterance's frames is 0 and their deviation 1, however loud it is.
func TestNormalised(t *testing.T) {
	u, _ := Generated{Seed: 2, Phonemes: 5}.Utterance(3)
	s := Spectrogram{Bands: 40, Hop: 0.01}
	frames := s.Of(u.Samples, u.Rate)
	sum, squares := 0.0, 0.0
	for _, v := range frames {
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	n := float64(len(frames))
	if math.Abs(sum/n) > 1e-4 || math.Abs(squares/n-1) > 1e-4 {
		t.Errorf("the mean is %g, and the mean square %g", sum/n, squares/n)
	}
	for i := range u.Samples {
		u.Samples[i] /= 4
	}
	for i, v := range s.Of(u.Samples, u.Rate) {
		if math.Abs(float64(v-frames[i])) > 1e-3 {
			t.Fatalf("a quarter as loud, value %d is %g, not %g", i, v, frames[i])
		}
	}
}
