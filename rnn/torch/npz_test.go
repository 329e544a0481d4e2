package torch_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/torch"
)

// readNPZ reads what WriteNPZ writes, by the text of the format: magic, version,
// length, dictionary, values.
func readNPZ(data []byte) ([]torch.Array, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var out []torch.Array
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		all, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		a, err := readNPY(all)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok || f.Method != zip.Store {
			return nil, fmt.Errorf("entry %s by method %d", f.Name, f.Method)
		}
		a.Name = name
		out = append(out, a)
	}
	return out, nil
}

var dictionary = regexp.MustCompile(`^\{'descr': '<([fiU])(\d+)', 'fortran_order': False, 'shape': \(((?:\d+,|\d+(?:, \d+)+)?)\), \} *\n$`)

func readNPY(data []byte) (torch.Array, error) {
	var a torch.Array
	values, ok := bytes.CutPrefix(data, []byte("\x93NUMPY\x01\x00"))
	if !ok {
		return a, errors.New("no magic")
	}
	n := int(binary.LittleEndian.Uint16(values))
	head, values := string(values[2:2+n]), values[2+n:]
	m := dictionary.FindStringSubmatch(head)
	if m == nil || (10+n)%64 != 0 {
		return a, fmt.Errorf("header %q", head)
	}
	size, _ := strconv.Atoi(m[2])
	count := 1
	for dim := range strings.FieldsFuncSeq(m[3], func(r rune) bool { return r == ',' || r == ' ' }) {
		d, _ := strconv.Atoi(dim)
		a.Shape = append(a.Shape, d)
		count *= d
	}
	var into any
	switch m[1] + m[2] {
	case "f4":
		v := make([]float32, count)
		a.Values, into = v, v
	case "f8":
		v := make([]float64, count)
		a.Values, into = v, v
	case "i8":
		v := make([]int64, count)
		a.Values, into = v, v
	default:
		into = make([]rune, size*count)
	}
	if read, err := binary.Decode(values, binary.LittleEndian, into); err != nil || read != len(values) {
		return a, fmt.Errorf("%d bytes of values, %d read: %v", len(values), read, err)
	}
	if text, ok := into.([]rune); ok {
		a.Values = string(text)
	}
	return a, nil
}

func TestNPZ(t *testing.T) {
	long := make([]float32, 3*70001) // more than is written at a time
	for i := range long {
		long[i] = float32(i)
	}
	want := []torch.Array{
		{Name: "text", Values: `{"word": "größer"}`},
		{Name: "scalar", Values: []float64{math.Pi}},
		{Name: "vector", Shape: []int{3}, Values: []float32{1, float32(math.Inf(-1)), math.SmallestNonzeroFloat32}},
		{Name: "matrix", Shape: []int{2, 3}, Values: []int64{1, -2, 3, 4, 5, math.MaxInt64}},
		{Name: "empty", Shape: []int{4, 0}, Values: []float64{}},
		{Name: "long", Shape: []int{1, 70001, 3}, Values: long},
		{Name: strings.Repeat("long name ", 20), Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Values: []float32{0}},
	}
	var file bytes.Buffer
	if err := torch.WriteNPZ(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := readNPZ(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %.300v, want %.300v", got, want)
	}
}

func TestExport(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTMPeephole, Input: 3, Hidden: 4, Layers: 2, Batch: 5, Steps: 6, Pass: rnn.Train, Output: 3}
	d, answer := draw(p)
	var first, second bytes.Buffer
	for _, w := range []io.Writer{&first, &second} {
		if err := torch.Export(w, d, answer, source); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("equal arrays make different bytes")
	}
	want, err := torch.Arrays(d, answer, source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readNPZ(first.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%s, want\n%s", shapes(got), shapes(want))
	}
}

func TestNPZRefusals(t *testing.T) {
	for _, test := range []struct {
		arrays []torch.Array
		want   string
	}{
		{[]torch.Array{{Name: "a", Values: "x"}, {Name: "a", Values: "y"}}, `torch: two arrays are called "a"`},
		{[]torch.Array{{Name: "a", Shape: []int{2, 3}, Values: make([]float32, 5)}}, "torch: array a: shape [2 3] has 6 values, not 5"},
		{[]torch.Array{{Name: "a", Shape: []int{1}, Values: []int{1}}}, "torch: array a: values are []int, not []float32, []float64, []int64 or string"},
	} {
		if err := torch.WriteNPZ(io.Discard, test.arrays); err == nil || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
	if err := torch.WriteNPZ(full{}, []torch.Array{{Name: "a", Values: "x"}}); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
