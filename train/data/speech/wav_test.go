package speech

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// chunk is a part of a WAV file.
func chunk(kind string, body []byte) []byte {
	out := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
	return append(out, make([]byte, len(body)%2)...)
}

// format is the chunk that says how samples are stored.
func format(kind, channels, rate, bits int) []byte {
	return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(
		binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, uint16(kind)), uint16(channels)),
		uint32(rate)), uint32(rate*channels*bits/8)), uint16(channels*bits/8)), uint16(bits))
}

func wav(chunks ...[]byte) []byte {
	return chunk("RIFF", append([]byte("WAVE"), slices.Concat(chunks...)...))
}

// sound is a WAV file of samples, each on all channels but lower on the others.
func sound(samples []float32, channels, rate int) []byte {
	var body []byte
	for _, v := range samples {
		for c := range channels {
			body = binary.LittleEndian.AppendUint16(body, uint16(int16(math.Round(float64(v)*(1<<15)))>>c))
		}
	}
	return wav(chunk("fmt ", format(1, channels, rate, 16)), chunk("LIST", []byte("odd")), chunk("data", body))
}

func parse(file []byte) ([]float32, int, error) {
	r := bytes.NewReader(file)
	w, err := readWAV(r, r.Size())
	if err != nil {
		return nil, 0, err
	}
	samples, err := w.read(r)
	return samples, w.rate, err
}

// TestReadWAV: samples come back, of one channel and of the first of several, behind other chunks.
func TestReadWAV(t *testing.T) {
	want := []float32{0, 0.5, -1, 0.25, -0.125}
	extended := slices.Concat(format(0xfffe, 1, 16000, 16), []byte{22, 0, 16, 0, 4, 0, 0, 0}, binary.LittleEndian.AppendUint16(nil, 1), make([]byte, 14))
	for name, file := range map[string][]byte{
		"mono": sound(want, 1, 16000), "stereo": sound(want, 2, 16000), "five channels": sound(want, 5, 16000),
		"extended": wav(chunk("fmt ", extended), sound(want, 1, 16000)[36+12:]),
		"more":     append(sound(want, 1, 16000), "behind it"...),
	} {
		if got, rate, err := parse(file); err != nil || rate != 16000 || !slices.Equal(got, want) {
			t.Errorf("%s: %v at %d, %v", name, got, rate, err)
		}
	}
}

// TestReadWAVRefuses: other files are refused in a sentence.
func TestReadWAVRefuses(t *testing.T) {
	good := sound(make([]float32, 100), 1, 8000)
	pcm, data := chunk("fmt ", format(1, 1, 8000, 16)), chunk("data", make([]byte, 20))
	for want, file := range map[string][]byte{
		"it is empty":                             nil,
		"it is no WAV file":                       []byte("ID3 an MP3 file"),
		"its sound takes 200 bytes, of which":     good[:len(good)-50],
		"or is cut off before it":                 good[:40],
		"its sound is empty":                      wav(pcm, chunk("data", nil)),
		"its sound comes before its format":       wav(data, pcm),
		"its samples have 32 bits in format 3":    wav(chunk("fmt ", format(3, 1, 8000, 32)), data),
		"its samples have 8 bits in format 1":     wav(chunk("fmt ", format(1, 1, 8000, 8)), data),
		"it has 0 channels":                       wav(chunk("fmt ", format(1, 0, 8000, 16)), data),
		"it has 100 samples a second":             wav(chunk("fmt ", format(1, 1, 100, 16)), data),
		"it is damaged: its format is cut off":    wav(chunk("fmt ", make([]byte, 9)), data),
		"its samples have 16 bits in format 8192": wav(chunk("fmt ", slices.Concat(format(0xfffe, 1, 8000, 16), make([]byte, 8), []byte{0, 32})), data),
	} {
		if _, _, err := parse(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// FuzzReadWAV: any file is refused in a sentence, or has samples from -1 to 1, no more than its bytes.
func FuzzReadWAV(f *testing.F) {
	f.Add(sound([]float32{0, 0.5, -1}, 1, 8000))
	f.Add(sound([]float32{0, 0.5, -1}, 3, 44100))
	f.Add(wav(chunk("fmt ", format(0xfffe, 1, 8000, 16)), chunk("data", make([]byte, 20))))
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVEdata\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, file []byte) {
		samples, rate, err := parse(file)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is no sentence", err)
			}
			return
		}
		if len(samples) == 0 || 2*len(samples) > len(file) || rate < leastRate || slices.Min(samples) < -1 || slices.Max(samples) > 1 {
			t.Errorf("%d samples at %d of %d bytes", len(samples), rate, len(file))
		}
		if frames := (Spectrogram{Bands: 7, Hop: 0.01}).Of(samples, rate); slices.ContainsFunc(frames, func(v float32) bool { return v != v }) {
			t.Error("a frame is not a number")
		}
	})
}
