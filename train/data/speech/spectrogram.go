package speech

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/dsp/window"
)

// A spectrogram of frames covers the frequencies up to highestHz in bands of equal width. A frame is
// windowSeconds long, so that bins of its Fourier transform are 50 Hz apart at any rate.
const (
	highestHz     = 4000
	windowSeconds = 0.02
	MostBands     = highestHz * windowSeconds // a bin each
)

// leastVariance keeps silence from being divided by nothing.
const leastVariance = 1e-4

// A Spectrogram says how sound becomes frames.
type Spectrogram struct {
	Bands int
	Hop   float64 // seconds from frame to frame
}

// Frames is the number of frames of a sound of so many samples, at least 1.
func (s Spectrogram) Frames(samples, rate int) int {
	seconds := float64(samples) / float64(rate)
	return 1 + max(0, int((seconds-windowSeconds)/s.Hop+1e-9))
}

// fits reports whether an utterance's frames fit so many steps and are enough for its labels: CTC needs
// a frame for each of them, and a blank between equal ones.
func (s Spectrogram) fits(name string, frames int, labels []int, steps int) error {
	least := len(labels)
	for i, c := range labels {
		if i > 0 && c == labels[i-1] {
			least++
		}
	}
	switch {
	case frames > steps:
		return fmt.Errorf("%s takes %d frames, but there are %d steps: set steps to %d, or raise hop", name, frames, steps, frames)
	case frames < least:
		return fmt.Errorf("%s has %d frames, but its transcript takes %d: lower hop, or remove it", name, frames, least)
	}
	return nil
}

// Of returns the frames of a sound, one after the other: logarithms of the power in each band, less
// their mean over all frames and bands, in units of their standard deviation.
func (s Spectrogram) Of(samples []float32, rate int) []float32 {
	size := int(math.Ceil(windowSeconds*float64(rate) - 1e-9))
	transform, frame, bins := fourier.NewFFT(size), make([]float64, size), make([]complex128, size/2+1)
	hann := window.Hann(slices.Repeat([]float64{1}, size))
	out := make([]float32, s.Frames(len(samples), rate)*s.Bands)
	power := make([]float64, s.Bands)
	sum, squares := 0.0, 0.0
	for t := range len(out) / s.Bands {
		from := int(math.Round(float64(t) * s.Hop * float64(rate)))
		for i := range frame {
			if frame[i] = 0; from+i < len(samples) {
				frame[i] = hann[i] * float64(samples[from+i])
			}
		}
		transform.Coefficients(bins, frame)
		clear(power)
		for k, v := range bins[1:] {
			if band := int((float64(k) + 0.5) * float64(rate*s.Bands) / float64(size*highestHz)); band < s.Bands {
				power[band] += real(v)*real(v) + imag(v)*imag(v)
			}
		}
		for band, p := range power {
			v := math.Log(p/float64(size*size) + 1e-12)
			out[t*s.Bands+band] = float32(v)
			sum, squares = sum+v, squares+v*v
		}
	}
	mean := sum / float64(len(out))
	deviation := math.Sqrt(max(squares/float64(len(out))-mean*mean, leastVariance))
	for i, v := range out {
		out[i] = float32((float64(v) - mean) / deviation)
	}
	return out
}
