package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"rnnbench/device/cuda/image"
)

// A copier counts what it compiles. Its image of a source is the source.
type copier struct {
	version string
	count   atomic.Int32
}

func (c *copier) Version() string { return c.version }

func (c *copier) Compile(_, source string) ([]byte, error) {
	c.count.Add(1)
	if source == "" {
		return nil, errors.New("no source")
	}
	return []byte(source), nil
}

// TestKept: an image is compiled once for each compiler, version, name and source. Errors are not
// kept.
func TestKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	old, next := &copier{version: "1"}, &copier{version: "2"}
	for range 3 {
		for _, c := range []*copier{old, next} {
			for _, kernel := range [][2]string{{"a", "x"}, {"a", "y"}, {"b", "x"}} {
				got, err := image.Kept(c, folder).Compile(kernel[0], kernel[1])
				if err != nil || string(got) != kernel[1] {
					t.Fatalf("%q, %v; want %q", got, err, kernel[1])
				}
			}
		}
		if _, err := image.Kept(old, folder).Compile("a", ""); err == nil {
			t.Error("an error was kept as an image")
		}
	}
	if old, next := old.count.Load(), next.count.Load(); old != 3+3 || next != 3 {
		t.Errorf("compiled %d and %d times, want 6 and 3", old, next)
	}
}

// TestNoFolder: where no folder can be made, each image is compiled.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", filepath.Join(file, "folder")} {
		c := &copier{}
		for range 2 {
			if got, err := image.Kept(c, folder).Compile("a", "x"); err != nil || string(got) != "x" {
				t.Errorf("%q: %q, %v", folder, got, err)
			}
		}
		if n := c.count.Load(); n != 2 {
			t.Errorf("%q: compiled %d times", folder, n)
		}
	}
}

// TestTogether: several at once may keep the same images, and leave nothing else behind.
func TestTogether(t *testing.T) {
	folder := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				source := string(rune('a' + i%5))
				if got, err := image.Kept(&copier{}, folder).Compile("k", source); err != nil || string(got) != source {
					t.Errorf("%q, %v; want %q", got, err, source)
				}
			}
		})
	}
	all.Wait()
	if files, err := os.ReadDir(folder); err != nil || len(files) != 5 {
		t.Errorf("the folder has %d files, %v; want 5", len(files), err)
	}
}
