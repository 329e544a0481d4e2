package speech

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes a folder of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFolder: generated speech, written to a folder, gives nearly the same minibatches. A tenth is held
// out, and transcripts may be written in other ways.
func TestFolder(t *testing.T) {
	g, files := Generated{Seed: 4, Utterances: 20, Phonemes: 3}, map[string]string{"README.txt": "é"}
	for i := range g.Utterances {
		u, _ := g.Utterance(i)
		name := string(rune('a'+i%3)) + "/" + string(rune('a'+i))
		files[name+".wav"], files[name+".txt"] = string(sound(u.Samples, 1+i%2, u.Rate)), "\ufeff "+strings.ToUpper(u.Text)+"\r\n"
	}
	dir := write(t, files)
	rest, err := OpenFolder(dir, English, false)
	if err != nil {
		t.Fatal(err)
	}
	held, err := OpenFolder(dir, English, true)
	if err != nil || rest.Len() != 18 || held.Len() != 2 || held.Alphabet().Classes() != 29 {
		t.Fatalf("%d utterances and %d held out, %v", rest.Len(), held.Len(), err)
	}
	next(t, newTask(t, rest, options(7, 90)))
	u, err := rest.Utterance(1) // the second of folder a
	if err != nil {
		t.Fatal(err)
	}
	want, _ := g.Utterance(3)
	if u.Text != want.Text || u.Rate != want.Rate || len(u.Samples) != len(want.Samples) {
		t.Errorf("%s, %d samples at %d; want %s, %d", u.Text, len(u.Samples), u.Rate, want.Text, len(want.Samples))
	}
	for i, v := range u.Samples {
		if math.Abs(float64(v-want.Samples[i])) > 1e-4 {
			t.Fatalf("sample %d is %g, not %g", i, v, want.Samples[i])
		}
	}
}

// TestFolderRefuses: what is wrong is told in a sentence that names the file.
func TestFolderRefuses(t *testing.T) {
	tone := string(sound(make([]float32, 4000), 1, 8000))
	for want, files := range map[string]map[string]string{
		"has 0 recordings NAME.wav":                          {"a.txt": "a"},
		"has 1 recordings NAME.wav":                          {"a.txt": "a", "a.WAV": tone},
		"a.wav has no transcript a.txt beside it":            {"a.wav": tone, "b.wav": tone, "b.txt": "b"},
		"a.txt is empty: a transcript has":                   {"a.wav": tone, "a.txt": " \n", "b.wav": tone, "b.txt": "b"},
		"b.txt: 'é' is not in the alphabet \"abcdefghijklmn": {"a.wav": tone, "a.txt": "a", "b.wav": tone, "b.txt": "é"},
		"a.wav: it is empty":                                 {"a.wav": "", "a.txt": "a", "b.wav": tone, "b.txt": "b"},
		"a.wav: it is no WAV file":                           {"a.wav": "fLaC, another format", "a.txt": "a", "b.wav": tone, "b.txt": "b"},
		"a.wav: it is cut off":                               {"a.wav": tone[:3000], "a.txt": "a", "b.wav": tone, "b.txt": "b"},
	} {
		if _, err := OpenFolder(write(t, files), English, false); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f, err := OpenFolder(write(t, map[string]string{"a.wav": tone, "a.txt": strings.Repeat("a", 25), "b.wav": tone, "b.txt": "b"}), English, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hop   float64
		steps int
		want  string
	}{{0.01, 49, ""}, {0.01, 48, "a.wav takes 49 frames, but there are 48 steps: set steps to 49"}, {0.02, 49, "a.wav has 25 frames, but its transcript takes 49"}} {
		if err := f.Fits(Spectrogram{Hop: c.hop}, c.steps); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestLostRecording: a file that goes away after it was looked at is an error of the minibatch.
func TestLostRecording(t *testing.T) {
	tone := string(sound(make([]float32, 4000), 1, 8000))
	dir := write(t, map[string]string{"a.wav": tone, "a.txt": "a", "b.wav": tone, "b.txt": "b"})
	f, err := OpenFolder(dir, English, false)
	if err != nil {
		t.Fatal(err)
	}
	task := newTask(t, f, options(1, 50))
	path := filepath.Join(dir, "a.wav")
	for _, change := range []func() error{func() error { return os.Truncate(path, 1000) }, func() error { return os.Remove(path) }} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := task.Next(&Minibatch{Frames: make([]float32, 50*40)}); err == nil || !strings.Contains(err.Error(), "a.wav") {
			t.Errorf("%v does not name the file", err)
		}
	}
}

// TestAlphabet: classes count from 1, and letters come back.
func TestAlphabet(t *testing.T) {
	a := Alphabet("bé a")
	labels, err := a.Labels("a é")
	if err != nil || !slices.Equal(labels, []int{4, 3, 2}) || a.Text(labels) != "a é" || a.Classes() != 5 {
		t.Errorf("%v, %q, %v", labels, a.Text(labels), err)
	}
	if _, err := a.Labels("c"); err == nil {
		t.Error("a letter that is not there has a class")
	}
}
