package speech

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A wave is the sound of a WAV file: 16-bit PCM. Of several channels the first counts.
type wave struct {
	rate, channels int
	at, bytes      int64 // where the samples of all channels lie
}

// Formats of WAV files. The extended one names its format further on.
const (
	formatPCM      = 1
	formatExtended = 0xfffe
)

// Bounds of a recording. Nobody speaks for longer than mostBytes.
const (
	leastRate, mostRate = 4000, 384000
	mostChannels        = 64
	mostBytes           = 256 << 20
)

var errNoWAV = errors.New("it is no WAV file")

// readWAV finds the sound in a file of so many bytes. It checks what the file claims against that size.
func readWAV(r io.ReaderAt, size int64) (wave, error) {
	head := make([]byte, 12)
	if size == 0 {
		return wave{}, errors.New("it is empty")
	}
	if _, err := r.ReadAt(head, 0); err != nil || string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return wave{}, errNoWAV
	}
	w := wave{}
	for at := int64(12); at+8 <= size; {
		if _, err := r.ReadAt(head[:8], at); err != nil {
			return wave{}, err
		}
		at += 8
		long := int64(binary.LittleEndian.Uint32(head[4:]))
		switch kind := string(head[:4]); {
		case kind == "fmt ":
			if err := w.readFormat(io.NewSectionReader(r, at, min(long, size-at))); err != nil {
				return wave{}, err
			}
		case kind == "data" && w.channels == 0:
			return wave{}, errors.New("it is damaged: its sound comes before its format")
		case kind == "data" && long > size-at:
			return wave{}, fmt.Errorf("it is cut off: its sound takes %d bytes, of which it has %d", long, size-at)
		case kind == "data":
			w.at, w.bytes = at, long
			return w, w.check()
		}
		at += long + long%2
	}
	return wave{}, errors.New("it has no sound, or is cut off before it")
}

// readFormat reads the chunk that says how samples are stored.
func (w *wave) readFormat(r io.Reader) error {
	chunk := make([]byte, 16)
	if _, err := io.ReadFull(r, chunk); err != nil {
		return errors.New("it is damaged: its format is cut off")
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint16(chunk[at:])) }
	format, bits := number(0), number(14)
	if format == formatExtended {
		more := make([]byte, 10)
		if _, err := io.ReadFull(r, more); err != nil {
			return errors.New("it is damaged: its format is cut off")
		}
		format = int(binary.LittleEndian.Uint16(more[8:]))
	}
	if format != formatPCM || bits != 16 {
		return fmt.Errorf("its samples have %d bits in format %d: convert it to 16-bit PCM", bits, format)
	}
	w.channels, w.rate = number(2), int(binary.LittleEndian.Uint32(chunk[4:]))
	switch {
	case w.channels < 1 || w.channels > mostChannels:
		return fmt.Errorf("it has %d channels: 1 to %d can be read", w.channels, mostChannels)
	case w.rate < leastRate || w.rate > mostRate:
		return fmt.Errorf("it has %d samples a second: %d to %d can be read", w.rate, leastRate, mostRate)
	}
	return nil
}

// check reports a sound of no samples or too many.
func (w wave) check() error {
	switch {
	case w.samples() == 0:
		return errors.New("its sound is empty")
	case w.bytes > mostBytes:
		return fmt.Errorf("its sound takes %d bytes, more than %d: cut it into utterances", w.bytes, mostBytes)
	}
	return nil
}

// samples is the number of samples of a channel.
func (w wave) samples() int { return int(w.bytes / int64(2*w.channels)) }

// read returns the first channel's samples.
func (w wave) read(r io.ReaderAt) ([]float32, error) {
	all := make([]byte, w.bytes)
	if n, err := r.ReadAt(all, w.at); n < len(all) {
		return nil, fmt.Errorf("it cannot be read any more: %w", err)
	}
	out := make([]float32, w.samples())
	for i := range out {
		out[i] = float32(int16(binary.LittleEndian.Uint16(all[2*w.channels*i:]))) / (1 << 15)
	}
	return out, nil
}
