package modelfile_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"rnnbench/modelfile"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// ways writes tensors in every kind of file.
func ways(t *testing.T, f numberFormat, tensors []saved) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"a.safetensors": safeFile(f, tensors)}
	for name, w := range map[string]*torchWriter{
		"zip.pt":     {numberFormat: f},
		"columns.pt": {numberFormat: f, columns: true},
		"legacy.pth": {numberFormat: f, legacy: true},
		"views.pth":  {numberFormat: f, legacy: true, views: true},
	} {
		files[name] = w.file(t, w.dict(tensors))
	}
	return files
}

// only reads the one layer of a file.
func only(t *testing.T, path string) modelfile.Layer {
	t.Helper()
	f, err := modelfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Layers) != 1 || f.Layers[0].Declined != "" {
		t.Fatalf("%s has layers %+v, not one that can be measured", path, f.Layers)
	}
	return f.Layers[0]
}

// TestForms: a layer of every form, from every kind of file and number, is what rnn.Data has.
func TestForms(t *testing.T) {
	for _, f := range formatsOfNumbers() {
		for _, p := range forms() {
			want := parametersOf(t, p, f)
			for name, content := range ways(t, f, savedAs("encoder.rnn.", want)) {
				l := only(t, at(t, name, content))
				if l.Name != "encoder.rnn" || l.Point != p || !l.Zeros {
					t.Errorf("%s, %s: %q at %+v, not encoder.rnn at %+v", name, f.safe, l.Name, l.Point, p)
				}
				if !reflect.DeepEqual(l.Tensors, want) {
					t.Errorf("%s, %s, %+v: tensors differ", name, f.safe, p)
				}
			}
		}
	}
}

// TestNoBias: a module without biases has biases of 0.
func TestNoBias(t *testing.T) {
	f := formatsOfNumbers()[0]
	for _, p := range forms() {
		want := parametersOf(t, p, f)
		var kept []saved
		for i, s := range savedAs("", want) {
			if strings.HasPrefix(s.name, "bias") {
				clear(want[i].Values)
				continue
			}
			kept = append(kept, s)
		}
		l := only(t, at(t, "a.safetensors", safeFile(f, kept)))
		if l.Name != "rnn" || l.Point != p || !reflect.DeepEqual(l.Tensors, want) || !strings.HasSuffix(l.Note, "there are no biases: they are taken as 0") {
			t.Errorf("%+v without biases is %q, %+v", p, l.Name, l.Point)
		}
	}
}

// sized is a tensor of that shape, of ones.
func sized(name string, shape ...int) saved {
	n := 1
	for _, s := range shape {
		n *= s
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = 1
	}
	return saved{name, shape, values}
}

// TestModules: names are grouped into layers, and a layer that is not one of PyTorch's is declined.
func TestModules(t *testing.T) {
	lstm := func(prefix, end string, input, hidden int) []saved {
		return []saved{
			sized(prefix+"weight_ih"+end, 4*hidden, input), sized(prefix+"weight_hh"+end, 4*hidden, hidden),
			sized(prefix+"bias_ih"+end, 4*hidden), sized(prefix+"bias_hh"+end, 4*hidden),
		}
	}
	join := func(lists ...[]saved) (all []saved) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		tensors []saved
		want    []string // name and point, or name and why it is declined, and the note
	}{
		{"cells", join(lstm("dec.", "", 3, 5), []saved{sized("gru.weight_ih", 6, 4), sized("gru.weight_hh", 6, 2), sized("fc.weight", 3, 3)}),
			[]string{"dec: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 1}), "gru: " + point(axis.Point{Cell: "gru", Input: 4, Hidden: 2, Layers: 1}) + " (there are no biases: they are taken as 0)"}},
		{"simple", []saved{sized("weight_ih_l0", 4, 3), sized("weight_hh_l0", 4, 4)},
			[]string{"rnn: " + point(axis.Point{Cell: "rnn-tanh", Input: 3, Hidden: 4, Layers: 1}) + " (tanh is assumed: the file does not say whether the units have tanh or relu; there are no biases: they are taken as 0)"}},
		{"layers that differ", join(lstm("a.", "_l0", 3, 5), lstm("a.", "_l1", 5, 5), lstm("a.", "_l2", 5, 2)),
			[]string{"a_l0: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 2}), "a_l2: " + point(axis.Point{Cell: "lstm", Input: 5, Hidden: 2, Layers: 1})}},
		{"both ways differ", join(lstm("a.", "_l0", 3, 5), lstm("a.", "_l0_reverse", 3, 4)),
			[]string{"a: the two ways of layer 0 differ in size"}},
		{"one way of two", join(lstm("a.", "_l0", 3, 5), lstm("a.", "_l1", 5, 5), lstm("a.", "_l0_reverse", 3, 5)),
			[]string{"a: weight_hh_l1_reverse is missing"}},
		{"a shard", []saved{sized("a.weight_ih_l0", 8, 2)}, []string{"a: weight_hh_l0 is missing"}},
		{"a gap", join(lstm("a.", "_l0", 3, 5), lstm("a.", "_l2", 5, 5)), []string{"a: weight_hh_l1 is missing"}},
		{"a far layer", lstm("a.", "_l9999", 3, 5), []string{"a: weight_hh_l0 is missing"}},
		{"one bias", lstm("a.", "_l0", 3, 5)[:3], []string{"a: bias_hh_l0 is missing"}},
		{"two gates", []saved{sized("a.weight_ih_l0", 8, 3), sized("a.weight_hh_l0", 8, 4)},
			[]string{"a: weight_hh_l0 has 8 rows for 4 units: an LSTM has 4 for each, a GRU 3, a simple unit 1"}},
		{"transposed", []saved{sized("a.weight_ih_l0", 3, 20), sized("a.weight_hh_l0", 5, 20)},
			[]string{"a: weight_hh_l0 has 5 rows for 20 units: an LSTM has 4 for each, a GRU 3, a simple unit 1"}},
		{"rows", []saved{sized("a.weight_ih_l0", 12, 3), sized("a.weight_hh_l0", 16, 4)},
			[]string{"a: weight_ih_l0 has 12 rows, but weight_hh_l0 has 16"}},
		{"a bias", append(lstm("a.", "_l0", 3, 5)[:2], sized("a.bias_ih_l0", 19), sized("a.bias_hh_l0", 20)),
			[]string{"a: bias_ih_l0 has 19 values, but weight_hh_l0 has 20 rows"}},
		{"shapes", []saved{sized("a.weight_ih_l0", 12), sized("a.weight_hh_l0", 16, 4)},
			[]string{"a: weight_ih_l0 has the shape [12], not one of 2 sizes above 0"}},
		{"empty", []saved{sized("a.weight_ih_l0", 0, 3), sized("a.weight_hh_l0", 0, 0)},
			[]string{"a: weight_hh_l0 has the shape [0 0], not one of 2 sizes above 0"}},
		{"a projected GRU", []saved{sized("a.weight_ih_l0", 12, 3), sized("a.weight_hh_l0", 12, 2), sized("a.weight_hr_l0", 2, 4)},
			[]string{"a: weight_hr_l0 is a projection, which only an LSTM has in PyTorch"}},
		{"a wide projection", []saved{sized("a.weight_ih_l0", 16, 3), sized("a.weight_hh_l0", 16, 4), sized("a.weight_hr_l0", 4, 4)},
			[]string{"a: projection is 4: it must be 0 (none) or less than the hidden units, of which a layer has 4"}},
		{"a projection", []saved{sized("a.weight_ih_l0", 16, 3), sized("a.weight_hh_l0", 16, 3), sized("a.weight_hr_l0", 2, 4)},
			[]string{"a: weight_hr_l0 has 2 rows, but weight_hh_l0 has 3 columns"}},
		{"somebody's own cell", append(lstm("a.", "", 3, 5), sized("a.norm.weight", 5), sized("a.norm.bias", 5)),
			[]string{"a: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 1}) + " (left out: norm.weight and 1 more tensors, which PyTorch's module does not have)"}},
		{"taken names", join(lstm("rnn.", "_l0", 3, 5), lstm("", "_l0", 3, 5), lstm("rnn.", "", 3, 5)),
			[]string{
				"rnn: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 1}), "rnn_: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 1}),
				"rnn__: " + point(axis.Point{Cell: "lstm", Input: 3, Hidden: 5, Layers: 1}),
			}},
	} {
		f := formatsOfNumbers()[0]
		for name, content := range ways(t, f, c.tensors) {
			file, err := modelfile.Read(at(t, name, content))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var got []string
			for _, l := range file.Layers {
				got = append(got, told(t, l))
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, %s: %q\nwant %q", c.name, name, got, c.want)
			}
		}
	}
}

func point(p axis.Point) string { return p.Cell + " " + p.String() }

// told is a layer's name, and its point or why it is declined, and its note.
func told(t *testing.T, l modelfile.Layer) string {
	t.Helper()
	s := l.Name + ": " + l.Declined
	if l.Declined == "" {
		s += point(l.Point)
		if d := problemOf(t, l.Point); len(rnn.NewData(d, 1, 1, "normal").Tensors) != len(l.Tensors)+1+l.Point.Reads()*len(d.Cell.States) {
			t.Errorf("%s: there are %d tensors", l.Name, len(l.Tensors))
		}
	}
	if l.Note != "" {
		s += " (" + l.Note + ")"
	}
	return s
}

// TestNumbers: the extremes of each format, and a format that weights do not have.
func TestNumbers(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		dtype string
		bits  []uint64
		want  []float64
	}{
		{"F16", []uint64{0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xfbff, 0x7c00, 0xfc00},
			[]float64{0, math.Copysign(0, -1), 0x1p-24, -1023 * 0x1p-24, 0x1p-14, 1, -65504, inf, -inf}},
		{"BF16", []uint64{0x8000, 1, 0x3f80, 0xff7f, 0x7f80}, []float64{math.Copysign(0, -1), 0x1p-133, 1, -0x1.fep127, inf}},
		{"F32", []uint64{1, 0xff7fffff}, []float64{0x1p-149, -math.MaxFloat32}},
		{"F64", []uint64{1, math.Float64bits(0x1p-149), math.Float64bits(1 + 0x1p-30), math.Float64bits(-1e300)}, []float64{0, 0x1p-149, 1, -inf}},
	} {
		n := len(c.bits)
		var data []byte
		for _, b := range c.bits {
			data = append(data, binary.LittleEndian.AppendUint64(nil, b)[:map[string]int{"F16": 2, "BF16": 2, "F32": 4, "F64": 8}[c.dtype]]...)
		}
		size := len(data)
		entry := func(name, shape string, from, to int) string {
			return fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, c.dtype, shape, from, to)
		}
		header := fmt.Sprintf(`{%s,%s}`, entry("weight_ih", fmt.Sprintf("[1,%d]", n), 0, size), entry("weight_hh", "[1,1]", size, size+size/n))
		l := only(t, at(t, "a.safetensors", withHeader(header, append(data, make([]byte, size/n)...))))
		for i, v := range l.Tensors[0].Values {
			if want := float32(c.want[i]); math.Float32bits(v) != math.Float32bits(want) {
				t.Errorf("%s %#x is %g, not %g", c.dtype, c.bits[i], v, want)
			}
		}
	}
	header := `{"a.weight_ih":{"dtype":"I8","shape":[4,2],"data_offsets":[0,8]},"a.weight_hh":{"dtype":"I8","shape":[4,1],"data_offsets":[8,12]}}`
	f, err := modelfile.Read(at(t, "a.safetensors", withHeader(header, make([]byte, 12))))
	if err != nil {
		t.Fatal(err)
	}
	if want := "weight_hh has values of type I8: only float32, float16, bfloat16 and float64 are read"; f.Layers[0].Declined != want {
		t.Errorf("%q, not %q", f.Layers[0].Declined, want)
	}
	if _, err := modelfile.Pick([]*modelfile.File{f}, nil); err == nil || !strings.HasPrefix(err.Error(), "no layer can be measured: a: weight_hh has values") {
		t.Error(err)
	}
	if _, err := modelfile.Pick([]*modelfile.File{f}, []string{"a"}); err == nil || !strings.HasPrefix(err.Error(), "layer a cannot be measured: weight_hh") {
		t.Error(err)
	}
}

// TestPick: layers are picked by name, or all that can be measured.
func TestPick(t *testing.T) {
	tensors := []saved{sized("one.weight_ih", 4, 1), sized("one.weight_hh", 4, 1), sized("two.weight_ih", 3, 1), sized("two.weight_hh", 3, 1), sized("bad.weight_ih", 3, 1)}
	f, err := modelfile.Read(at(t, "a.safetensors", safeFile(formatsOfNumbers()[0], tensors)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, "[one two]"}, {[]string{"two"}, "[two]"}, {[]string{"two", "one"}, "[two one]"},
		{[]string{"tow"}, "unknown layer \"tow\": did you mean two?"}, {[]string{"bad"}, "layer bad cannot be measured: weight_hh is missing"},
	} {
		picked, err := modelfile.Pick([]*modelfile.File{f}, c.names)
		var names []string
		for _, l := range picked {
			names = append(names, l.Name)
		}
		if got := fmt.Sprint(names); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q picks %s (%v), not %s", c.names, got, err, c.want)
		}
	}
}
