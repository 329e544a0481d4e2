package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"rnnbench/internal/input"
)

// An event of N-MNIST takes 5 bytes: x, y, one bit of polarity, and 23 bits of time in
// microseconds, the most significant first (Orchard et al. 2015).
const eventBytes = 5

// mostRecording bounds the file of a recording, in bytes. N-MNIST's take some 20 kB.
const mostRecording = 64 << 20

// An event in row overflow is none: all events after it come 8,192 microseconds later.
const overflow, later = 240, 1 << 13

// ParseEvents reads a recording of N-MNIST, a .bin file.
func ParseEvents(file []byte) ([]Event, error) {
	if len(file) == 0 {
		return nil, errors.New("the recording is empty")
	}
	if len(file)%eventBytes != 0 {
		return nil, fmt.Errorf("the recording has %d bytes, and each event takes %d: it is cut off or no recording", len(file), eventBytes)
	}
	events := make([]Event, 0, len(file)/eventBytes)
	var since uint32
	for i := 0; i < len(file); i += eventBytes {
		b := file[i : i+eventBytes]
		if b[1] == overflow {
			since += later
			continue
		}
		if b[0] >= pixels || b[1] >= pixels {
			return nil, fmt.Errorf("event %d is at pixel (%d, %d), outside %d × %d", i/eventBytes+1, b[0], b[1], pixels, pixels)
		}
		time := uint32(b[2]&0x7f)<<16 | uint32(b[3])<<8 | uint32(b[4])
		events = append(events, Event{X: b[0], Y: b[1], On: b[2]&0x80 != 0, Time: since + time})
	}
	if len(events) == 0 {
		return nil, errors.New("the recording has no events")
	}
	return events, nil
}

// recordings lists at most so many .bin files of a part of N-MNIST, Train or Test: one of each
// digit in turn, by name.
func recordings(dir, part string, most int) ([]string, error) {
	root := filepath.Join(dir, part)
	digits, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s: name the folder that holds N-MNIST's Train and Test", root)
	}
	if err != nil {
		return nil, err
	}
	type file struct {
		turn int
		path string
	}
	var files []file
	for _, d := range digits {
		if !d.IsDir() {
			continue
		}
		paths, err := os.ReadDir(filepath.Join(root, d.Name()))
		if err != nil {
			return nil, err
		}
		turn := 0
		for _, f := range paths {
			if filepath.Ext(f.Name()) == ".bin" {
				files = append(files, file{turn, filepath.Join(root, d.Name(), f.Name())})
				turn++
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no recordings: they are expected as %s", root, filepath.Join(root, "0", "00001.bin"))
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.turn, b.turn) })
	var out []string
	for _, f := range files[:min(most, len(files))] {
		out = append(out, f.path)
	}
	return out, nil
}

// openNMNIST reads N-MNIST's recordings, all at once, so that a broken file is found here.
func openNMNIST(s settings, o Options) (Source, error) {
	if s["dir"] == "" {
		return nil, errors.New("name the folder that holds N-MNIST's Train and Test, as in n-mnist:DIR")
	}
	most, err := s.whole("recordings", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	part := "Train"
	if o.Held {
		part = "Test"
	}
	paths, err := recordings(s["dir"], part, most)
	if err != nil {
		return nil, err
	}
	l := newLibrary(len(paths), func(i int) ([]Event, error) {
		file, err := input.ReadFile(paths[i], mostRecording)
		if err != nil {
			return nil, err
		}
		events, err := ParseEvents(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		return events, nil
	})
	if err := l.loadAll(); err != nil {
		return nil, err
	}
	return newForecast(l, s, o)
}
