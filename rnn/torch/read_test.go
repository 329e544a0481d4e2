package torch_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/torch"
)

// npz is a file of arrays.
func npz(t testing.TB, arrays ...torch.Array) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := torch.WriteNPZ(&b, arrays); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(text []byte, places ...torch.Place) error {
	return torch.ReadNPZ(bytes.NewReader(text), int64(len(text)), places)
}

// TestReadNPZ: what was written is read, and what does not fit says why.
func TestReadNPZ(t *testing.T) {
	text := npz(t,
		torch.Array{Name: "a", Shape: []int{2, 3}, Values: []float32{1, 2, 3, 4, 5, 6}},
		torch.Array{Name: "b", Shape: []int{2}, Values: []float64{0.5, -1}},
		torch.Array{Name: "n", Shape: []int{1}, Values: []int64{7}},
		torch.Array{Name: "meta", Values: "{}"})
	a, b := torch.Place{Name: "a", Shape: []int{2, 3}, Values: make([]float32, 6)}, torch.Place{Name: "b", Shape: []int{2}, Values: make([]float32, 2)}
	if err := read(text, b, a); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Values, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(b.Values, []float32{0.5, -1}) {
		t.Errorf("read %v and %v", a.Values, b.Values)
	}
	for _, c := range []struct {
		text  []byte
		place torch.Place
		want  string
	}{
		{text, torch.Place{Name: "c", Shape: []int{1}, Values: make([]float32, 1)}, "there is no array c"},
		{text, torch.Place{Name: "a", Shape: []int{3, 2}, Values: make([]float32, 6)}, "its shape is (2, 3), not (3, 2)"},
		{text, torch.Place{Name: "a", Shape: []int{6}, Values: make([]float32, 6)}, "its shape is (2, 3), not (6)"},
		{text, torch.Place{Name: "n", Shape: []int{1}, Values: make([]float32, 1)}, `its type is "<i8"`},
		{[]byte("PK"), a, "it is no .npz file"},
		{nil, a, "it is no .npz file"},
		{bytes.Replace(text, []byte("NUMPY"), []byte("NUMPI"), 1), a, "it is no .npy file"},
		{bytes.Replace(text, []byte("False"), []byte("True "), 1), a, "it is in Fortran order"},
	} {
		if err := read(c.text, c.place); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.place.Name, c.place.Shape, err, c.want)
		}
	}
	spoilt := slices.Clone(text) // a value, which the checksum tells
	spoilt[bytes.Index(text, []byte{0, 0, 0x80, 0x3f})] = 1
	if err := read(spoilt, a); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a changed value: %v", err)
	}
}

// TestReadBytes: bytes are read up to a limit, which the header's claim does not lift.
func TestReadBytes(t *testing.T) {
	text := npz(t,
		torch.Array{Name: "about", Shape: []int{3}, Values: []int64{0, 7, 255}},
		torch.Array{Name: "huge", Shape: []int{1}, Values: []int64{256}},
		torch.Array{Name: "square", Shape: []int{1, 1}, Values: []int64{1}},
		torch.Array{Name: "values", Shape: []int{1}, Values: []float32{1}})
	read := func(text []byte, name string, most int) ([]byte, error) {
		return torch.ReadBytes(bytes.NewReader(text), int64(len(text)), name, most)
	}
	if got, err := read(text, "about", 3); err != nil || !bytes.Equal(got, []byte{0, 7, 255}) {
		t.Errorf("read %v, %v", got, err)
	}
	claims := bytes.Replace(text, []byte("'shape': (3,), }          "), []byte("'shape': (8589934592,), } "), 1)
	if bytes.Equal(claims, text) {
		t.Fatal("the test looks for another header")
	}
	for _, c := range []struct {
		text       []byte
		name, want string
		most       int
	}{
		{text, "about", "it has 3 values, more than 2", 2},
		{claims, "about", "it has 8589934592 values, more than 100", 100},
		{text, "huge", "it holds 256, which is no byte", 9},
		{text, "square", "not a vector of <i8", 9},
		{text, "values", "not a vector of <i8", 9},
		{text, "none", "there is no array none", 9},
		{text[:40], "about", "it is no .npz file", 9},
	} {
		if got, err := read(c.text, c.name, c.most); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// FuzzReadNPZ: any file is read or refused.
func FuzzReadNPZ(f *testing.F) {
	whole := npz(f, torch.Array{Name: "a", Shape: []int{2, 3}, Values: []float32{1, 2, 3, 4, 5, 6}})
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte("(2, 3)"), []byte("(9, 9)"), 1))
	f.Fuzz(func(t *testing.T, text []byte) {
		values := make([]float32, 6, 7)
		values[:7][6] = 42
		_ = read(text, torch.Place{Name: "a", Shape: []int{2, 3}, Values: values})
		if values[:7][6] != 42 {
			t.Error("more was read than there is room for")
		}
	})
}
