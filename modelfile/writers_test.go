package modelfile_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// A saved is a tensor that a test writes to a file.
type saved struct {
	name   string
	shape  []int
	values []float32
}

// A numberFormat is one in which a test writes values.
type numberFormat struct {
	safe, storage string // its names in a safetensors header and in a pickle
	bytes         int
	put           func(float32) []byte
	exact         func(float32) float32 // the nearest value that it has
}

func formatsOfNumbers() []numberFormat {
	same := func(v float32) float32 { return v }
	top := func(bits int) func(float32) float32 { // drops the last bits of the fraction
		return func(v float32) float32 { return math.Float32frombits(math.Float32bits(v) >> bits << bits) }
	}
	le := binary.LittleEndian
	return []numberFormat{
		{"F32", "FloatStorage", 4, func(v float32) []byte { return le.AppendUint32(nil, math.Float32bits(v)) }, same},
		{"F64", "DoubleStorage", 8, func(v float32) []byte { return le.AppendUint64(nil, math.Float64bits(float64(v))) }, same},
		{"BF16", "BFloat16Storage", 2, func(v float32) []byte { return le.AppendUint16(nil, uint16(math.Float32bits(v)>>16)) }, top(16)},
		{"F16", "HalfStorage", 2, func(v float32) []byte { // of a normal number
			b := math.Float32bits(v)
			if v == 0 {
				return []byte{0, 0}
			}
			return le.AppendUint16(nil, uint16(b>>31<<15|(b>>23&255-112)<<10|b>>13&0x3ff))
		}, top(13)},
	}
}

func (f numberFormat) bytesOf(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = append(b, f.put(v)...)
	}
	return b
}

// safeFile writes a safetensors file.
func safeFile(f numberFormat, tensors []saved) []byte {
	var header, data bytes.Buffer
	header.WriteString(`{"__metadata__":{"format":"pt"}`)
	for _, t := range tensors {
		b := f.bytesOf(t.values)
		name, _ := json.Marshal(t.name)
		shape, _ := json.Marshal(t.shape)
		fmt.Fprintf(&header, `,%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, f.safe, shape, data.Len(), data.Len()+len(b))
		data.Write(b)
	}
	header.WriteString("}")
	return withHeader(header.String(), data.Bytes())
}

func withHeader(header string, data []byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

// Opcodes of a pickle, as torch.save writes them.

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func whole(n int) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func tuple(values ...string) string {
	s := "("
	for _, v := range values {
		s += v
	}
	return s + "t"
}

func wholes(list []int) string {
	var s []string
	for _, n := range list {
		s = append(s, whole(n))
	}
	return tuple(s...)
}

func called(module, name string, args ...string) string {
	return "c" + module + "\n" + name + "\n" + tuple(args...) + "R"
}

func ordered(pairs ...string) string {
	s := "ccollections\nOrderedDict\n)R("
	for _, p := range pairs {
		s += p
	}
	return s + "u"
}

func pickled(value string) string { return "\x80\x02" + value + "." }

// A torchWriter writes files of torch.save.
type torchWriter struct {
	numberFormat
	columns  bool // matrices lie by columns
	legacy   bool // the old format
	views    bool // where a tensor begins in its storage, a view of the storage says
	storages [][]byte
}

// tensor is the pickle of a tensor, as a Parameter.
func (w *torchWriter) tensor(t saved) string {
	values, strides := t.values, make([]int, len(t.shape))
	n := 1
	for i := range slices.Backward(t.shape) {
		strides[i] = n
		n *= t.shape[i]
	}
	if w.columns && len(t.shape) == 2 {
		rows, cols := t.shape[0], t.shape[1]
		values = make([]float32, len(t.values))
		for r := range rows {
			for c := range cols {
				values[c*rows+r] = t.values[r*cols+c]
			}
		}
		strides = []int{1, rows}
	}
	const skipped = 3 // values in front of a tensor's, as where tensors share a storage
	key := fmt.Sprint(len(w.storages))
	w.storages = append(w.storages, append(make([]byte, skipped*w.bytes), w.bytesOf(values)...))
	id := []string{text("storage"), "ctorch\n" + w.storage + "\n", text(key), text("cpu"), whole(len(values) + skipped)}
	first := skipped
	switch {
	case w.views:
		first, id = 0, append(id, tuple(text("view"+key), whole(skipped), whole(len(values))))
	case w.legacy:
		id = append(id, "N")
	}
	data := called("torch._utils", "_rebuild_tensor_v2", tuple(id...)+"Q", whole(first), wholes(t.shape), wholes(strides), "\x89", ordered())
	return called("torch._utils", "_rebuild_parameter", data, "\x88", ordered())
}

func (w *torchWriter) dict(tensors []saved) string {
	var pairs []string
	for _, t := range tensors {
		pairs = append(pairs, text(t.name), w.tensor(t))
	}
	return ordered(pairs...)
}

// file writes a file that holds the value of a pickle.
func (w *torchWriter) file(t testing.TB, value string) []byte {
	t.Helper()
	var b bytes.Buffer
	if w.legacy {
		var keys string
		for i := range w.storages {
			keys += text(fmt.Sprint(i))
		}
		for _, v := range []string{"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", whole(1001), "}(" + text("little_endian") + "\x88u", value, "](" + keys + "e"} {
			b.WriteString(pickled(v))
		}
		for _, data := range w.storages {
			b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(data)/w.bytes)))
			b.Write(data)
		}
		return b.Bytes()
	}
	files := []string{"data.pkl", pickled(value), "byteorder", "little"}
	for i, data := range w.storages {
		files = append(files, fmt.Sprintf("data/%d", i), string(data))
	}
	return zipped(t, zip.Store, files...)
}

// zipped writes a zip archive of names and contents.
func zipped(t testing.TB, method uint16, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := z.CreateHeader(&zip.FileHeader{Name: "model/" + files[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// at writes a file.
func at(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// forms lists the recurrent modules that PyTorch has, at odd sizes.
func forms() []axis.Point {
	var list []axis.Point
	for _, cell := range []string{"lstm", "gru", "rnn-tanh"} {
		for _, layers := range []int{1, 3} {
			for _, direction := range []axis.Direction{"", "both"} {
				for _, projection := range []int{0, 3} {
					if projection == 0 || cell == "lstm" {
						list = append(list, axis.Point{Cell: cell, Input: 5, Hidden: 7, Layers: layers, Direction: direction, Projection: projection})
					}
				}
			}
		}
	}
	return list
}

// problemOf is p at one step of one sequence.
func problemOf(t *testing.T, p axis.Point) rnn.Problem {
	t.Helper()
	p.Batch, p.Steps, p.Pass, p.Precision = 1, 1, "forward", "fp32"
	problem, err := rnn.Of(p)
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

// parametersOf draws the parameters of p's layers. Every value is one that f has.
func parametersOf(t *testing.T, p axis.Point, f numberFormat) []rnn.Tensor {
	t.Helper()
	var list []rnn.Tensor
	for _, v := range rnn.NewData(problemOf(t, p), 1, 1, "normal").Tensors {
		if v.PerSequence {
			continue
		}
		for i := range v.Values {
			v.Values[i] = f.exact(v.Values[i])
		}
		list = append(list, v)
	}
	return list
}

// savedAs is how PyTorch saves parameters of a module of that name.
func savedAs(module string, parameters []rnn.Tensor) []saved {
	var list []saved
	for _, v := range parameters {
		s := saved{module + v.Name, []int{v.Rows, v.Cols}, v.Values}
		if v.Rows == 1 && v.Name[:4] == "bias" {
			s.shape = []int{v.Cols}
		}
		list = append(list, s)
	}
	return list
}
