package modelfile_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/modelfile"
	"rnnbench/rnn/axis"
)

// gruFiles are a GRU in every kind of file.
func gruFiles(t *testing.T) map[string][]byte {
	t.Helper()
	f := formatsOfNumbers()[0]
	return ways(t, f, savedAs("a.", parametersOf(t, axis.Point{Cell: "gru", Input: 5, Hidden: 7, Layers: 1}, f)))
}

// refused reads a file that must be refused in one sentence, with little memory. It returns the sentence.
func refused(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := at(t, name, content)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := modelfile.Read(path)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20+64*uint64(len(content)) {
		t.Errorf("%s of %d bytes takes %d bytes of memory", name, len(content), took)
	}
	if err == nil {
		t.Errorf("%s is read: %+v", name, f.Layers)
		return ""
	}
	says, ok := strings.CutPrefix(err.Error(), path)
	if !ok || strings.Contains(says, "\n") || len(says) > 400 {
		t.Errorf("no sentence about %s: %v", name, err)
	}
	return strings.TrimPrefix(says, ": ")
}

// TestTruncated: a file that lacks its end is refused, wherever it ends.
func TestTruncated(t *testing.T) {
	for name, content := range gruFiles(t) {
		for n := range len(content) {
			if n > 300 && n%53 > 0 {
				continue
			}
			refused(t, name, content[:n])
		}
	}
}

// TestWrongSafetensors: a header that contradicts itself or the file is refused.
func TestWrongSafetensors(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`"a.weight_ih_l0":{"dtype":%q,"shape":%s,"data_offsets":%s}`, dtype, shape, offsets)
	}
	long := strings.Repeat("9", 1000)
	for header, want := range map[string]string{
		`{}`:      "the model has no recurrent layer",
		`[]`:      "its header is not JSON of an object",
		`{"a`:     "its header is not JSON",
		`{}{}`:    "its header goes on after its end",
		`{"a":1}`: "its header is wrong at a",
		`{"a":{"dtype":"F32","shape":[` + long + `],"data_offsets":[0,4]}}`: "its header is wrong at a",
		`{"__metadata__":{"a":1}}`:                                                                    "its header is wrong at __metadata__",
		`{"a":` + strings.Repeat("[", 20000):                                                          "its header is wrong at a",
		"{" + one("F32", "[1]", "[0,4]") + "," + one("F32", "[1]", "[4,8]") + "}":                     "two tensors are called a.weight_ih_l0",
		"{" + one("F32", "[1]", "[0,4]") + `,"b":{"dtype":"I8","shape":[4],"data_offsets":[3,7]}}`:    "tensors a.weight_ih_l0 and b overlap",
		"{" + one("F32", "[1]", "[0,5]") + "}":                                                        "tensor a.weight_ih_l0: its shape [1] is of 1 values of type F32, but it has 5 bytes",
		"{" + one("F32", "[1]", "[0]") + "}":                                                          "tensor a.weight_ih_l0: it has 1 offsets, not 2",
		"{" + one("F32", "[3]", "[0,12]") + "}":                                                       "tensor a.weight_ih_l0: its bytes 0 to 12 are not in the file, which has 8 after the header",
		"{" + one("F32", "[1]", "[-4,0]") + "}":                                                       "tensor a.weight_ih_l0: its bytes -4 to 0 are not in the file, which has 8 after the header",
		"{" + one("F32", "[1]", "[8,4]") + "}":                                                        "tensor a.weight_ih_l0: its bytes 8 to 4 are not in the file, which has 8 after the header",
		"{" + one("F32", "[-1]", "[0,4]") + "}":                                                       "tensor a.weight_ih_l0: a size is -1",
		"{" + one("F32", "[2147483648,2147483648]", "[0,8]") + "}":                                    "tensor a.weight_ih_l0: its sizes [2147483648 2147483648] are more than any file holds",
		"{" + one("F32", "[0,2147483648,4294967296]", "[0,0]") + "}":                                  "a cannot",
		"{" + one("F32", "["+strings.Repeat("1,", 99)+"1]", "[0,4]") + "}":                            "tensor a.weight_ih_l0: it has 100 dimensions",
		`{"` + strings.Repeat("a", 2000) + `":` + `{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`: "the name of a tensor has 2000 letters: 1000 at most are read",
	} {
		content := withHeader(header, make([]byte, 8))
		if want == "a cannot" { // the layer is there, but declined
			f, err := modelfile.Read(at(t, "a.safetensors", content))
			if err != nil || f.Layers[0].Declined == "" {
				t.Errorf("%s: %v", header, err)
			}
			continue
		}
		if got := refused(t, "a.safetensors", content); got != want {
			t.Errorf("%.80s: %q, not %q", header, got, want)
		}
	}
	for content, want := range map[string]string{
		"\x03\x00\x00\x00\x00\x00\x00\x00{}": "it is truncated, or no safetensors: its header has 3 bytes, and the file has 10",
		"\xff\xff\xff\xff\xff\xff\xff\xff{}": "it is truncated, or no safetensors: its header has 18446744073709551615 bytes, and the file has 10",
		"{}":                                 "it is truncated: it has no header",
	} {
		if got := refused(t, "a.safetensors", []byte(content)); got != want {
			t.Errorf("%q: %q, not %q", content, got, want)
		}
	}
}

// TestGiantHeader: a header of more than 100 MB is refused before it is read.
func TestGiantHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	if err := os.WriteFile(path, []byte("\x00\x00\x00\x06\x00\x00\x00\x00{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<28); err != nil {
		t.Fatal(err)
	}
	if _, err := modelfile.Read(path); err == nil || err.Error() != path+": its header has 100663296 bytes, more than 100000000" {
		t.Error(err)
	}
}

// TestWrongTorch: a file of torch.save that contradicts itself is refused, and nothing in it is run.
func TestWrongTorch(t *testing.T) {
	f := formatsOfNumbers()[0]
	ran := filepath.Join(t.TempDir(), "ran")
	system := called("os", "system", text("touch "+ran))
	storage := tuple(text("storage"), "ctorch\nFloatStorage\n", text("0"), text("cpu"), whole(8)) + "Q"
	tensor := func(args ...string) string {
		return "}" + text("weight_ih_l0") + called("torch._utils", "_rebuild_tensor_v2", args...) + "s"
	}
	const written = "tensor weight_ih_l0: it is not as PyTorch writes tensors"
	for value, want := range map[string]string{
		system:                         "it holds an object of os.system, in which there are no parameters of recurrent layers, and nothing of a file is run: save model.state_dict()",
		"cos\nsystem\n":                "it holds no state_dict: save model.state_dict()",
		"}" + text("a") + system + "s": "the model has no recurrent layer",
		"}" + text("weight_ih_l0") + system + "s":           "the model has no recurrent layer",
		"cmine\nModel\n)\x81}b":                             "it holds an object of mine.Model, in which there are no parameters of recurrent layers, and nothing of a file is run: save model.state_dict()",
		"c" + strings.Repeat("m", 900) + "\nModel\n)\x81}b": "it holds an object of " + strings.Repeat("m", 100) + "…, in which there are no parameters of recurrent layers, and nothing of a file is run: save model.state_dict()",
		"K\x01":  "it holds no state_dict: save model.state_dict()",
		"}I1\n":  "pickle: opcode 0x49 at byte 3 is not one that PyTorch writes",
		tensor(): written,
		tensor(storage, whole(0), wholes([]int{1, 1}), wholes([]int{1})):                           written,
		tensor(storage, whole(0), tuple("N"), wholes([]int{1})):                                    written,
		tensor(whole(0), whole(0), wholes([]int{1}), wholes([]int{1})):                             written,
		tensor(storage, "N", wholes([]int{1}), wholes([]int{1})):                                   written,
		tensor(storage, whole(-1), wholes([]int{1}), wholes([]int{1})):                             "tensor weight_ih_l0: it begins at value -1",
		tensor(storage, whole(8), wholes([]int{1}), wholes([]int{1})):                              "tensor weight_ih_l0: its sizes are [1], but its storage has 8 values",
		tensor(storage, whole(0), wholes([]int{3, 3}), wholes([]int{3, 1})):                        "tensor weight_ih_l0: its sizes are [3 3], but its storage has 8 values",
		tensor(storage, whole(0), wholes([]int{-3, 3}), wholes([]int{3, 1})):                       "tensor weight_ih_l0: a size is -3",
		tensor(storage, whole(0), wholes([]int{3, 3}), wholes([]int{-1, 1})):                       "tensor weight_ih_l0: its stride is -1",
		tensor(storage, whole(0), wholes([]int{3, 3}), wholes([]int{1 << 62, 1})):                  "tensor weight_ih_l0: its stride is 4611686018427387904",
		tensor(storage, whole(0), wholes([]int{1 << 31, 1 << 31}), wholes([]int{0, 0})):            "tensor weight_ih_l0: its sizes [2147483648 2147483648] are more than any file holds",
		"}" + text("weight_ih_l0") + called("torch._utils", "_rebuild_parameter") + "s":            "tensor weight_ih_l0: it is a parameter without a tensor",
		"}" + text("weight_ih_l0") + called("torch._utils", "_rebuild_parameter", "K\x01") + "s":   "tensor weight_ih_l0: it is a parameter without a tensor",
		"}" + text(strings.Repeat("a", 2000)) + called("torch._utils", "_rebuild_tensor_v2") + "s": "the name of a tensor has 2000 letters: 1000 at most are read",
		strings.Repeat("]", 100) + strings.Repeat("a", 99):                                         "its values are in each other more than 64 deep: save model.state_dict() alone",
		strings.Repeat("](", 100) + strings.Repeat("e", 100):                                       "its values are in each other more than 64 deep: save model.state_dict() alone",
		"K\x01" + strings.Repeat("\x85", 100):                                                      "its values are in each other more than 64 deep: save model.state_dict() alone",
		"]" + strings.Repeat("2\x86", 60):                                                          "it holds no state_dict: save model.state_dict()", // 2⁶⁰ ways to the list
	} {
		w := &torchWriter{numberFormat: f, storages: [][]byte{make([]byte, 32)}}
		if got := refused(t, "a.pt", w.file(t, value)); got != want {
			t.Errorf("%.200q: %q, not %q", value, got, want)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("os.system was called")
	}
}

// TestShared: tensors that show few values as many take no more memory than a file of that size may.
func TestShared(t *testing.T) {
	storage := tuple(text("storage"), "ctorch\nFloatStorage\n", text("0"), text("cpu"), whole(1)) + "Q"
	tensor := func(name string, rows, cols int) string {
		return text(name) + called("torch._utils", "_rebuild_tensor_v2", storage, whole(0), wholes([]int{rows, cols}), wholes([]int{0, 0}), "\x89", ordered())
	}
	w := &torchWriter{numberFormat: formatsOfNumbers()[0], storages: [][]byte{make([]byte, 4)}}
	value := ordered(tensor("weight_ih_l0", 4<<10, 1<<10), tensor("weight_hh_l0", 4<<10, 1<<10))
	want := "tensor weight_ih_l0: tensors share storages so often that their values take many times the memory of the file"
	if got := refused(t, "a.pt", w.file(t, value)); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestWrongArchive: what is no archive of torch.save is refused.
func TestWrongArchive(t *testing.T) {
	good := pickled("}")
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"another zip", zipped(t, zip.Store, "readme", "text"), "it is a zip archive, but none of torch.save: it has no data.pkl"},
		{"compressed", zipped(t, zip.Deflate, "data.pkl", good), "model/data.pkl is compressed, which torch.save does not do"},
		{"a bomb", zipped(t, zip.Deflate, "data.pkl", good+strings.Repeat("]", 1<<24)), "model/data.pkl is compressed, which torch.save does not do"},
		{"big", zipped(t, zip.Store, "data.pkl", good, "byteorder", "big"), `its byte order is "big": only little is read`},
		{"no storage", zipped(t, zip.Store, "data.pkl", pickled("}"+text("weight_ih")+(&torchWriter{numberFormat: formatsOfNumbers()[0]}).tensor(sized("a", 1))+"s")), "tensor weight_ih: the file has no storage 0"},
		{"a pickle", []byte(good), "it is a pickle, but not one of torch.save: save model.state_dict() by torch.save"},
		{"a text", []byte("model"), "it is no file of torch.save: it is neither a zip archive nor a pickle"},
		{"nothing", nil, "it is no file of torch.save: it is neither a zip archive nor a pickle"},
	} {
		if got := refused(t, "a.pt", c.content); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	legacy := gruFiles(t)["legacy.pth"]
	for _, c := range []struct{ old, with, want string }{
		{"FloatStorage", "BlackStorage", "storage 0 is of no type that is known"},
		{text("little_endian") + "\x88", text("little_endian") + "\x89", "its byte order is big: only little is read"},
		{"\x8a\x0a\x6c\xfc", "\x8a\x0a\x6c\xfd", "it is a pickle, but not one of torch.save: save model.state_dict() by torch.save"},
	} {
		if got := refused(t, "a.pth", bytes.ReplaceAll(legacy, []byte(c.old), []byte(c.with))); got != c.want {
			t.Errorf("with %q: %q, not %q", c.with, got, c.want)
		}
	}
}

// TestNoModel: a file of another kind, a folder, and no file at all.
func TestNoModel(t *testing.T) {
	if got := refused(t, "a.bin", []byte("text")); !strings.HasPrefix(got, " is no model: ") {
		t.Error(got)
	}
	if _, err := modelfile.Read(t.TempDir()); err == nil || !strings.HasSuffix(err.Error(), " is not a file") {
		t.Error(err)
	}
	if _, err := modelfile.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("there is no file, but it is read")
	}
}

// FuzzSafetensors: no file makes the reader fail otherwise than by an error.
func FuzzSafetensors(f *testing.F) {
	fuzzFiles(f, "a.safetensors", safeFile(formatsOfNumbers()[0], []saved{sized("a.weight_ih", 3, 2), sized("a.weight_hh", 3, 1)}))
}

// FuzzTorch is FuzzSafetensors for files of torch.save, in both formats.
func FuzzTorch(f *testing.F) {
	var seeds [][]byte
	for _, legacy := range []bool{false, true} {
		w := &torchWriter{numberFormat: formatsOfNumbers()[0], legacy: legacy, columns: true}
		seeds = append(seeds, w.file(f, w.dict([]saved{sized("a.weight_ih", 3, 2), sized("a.weight_hh", 3, 1)})))
	}
	fuzzFiles(f, "a.pt", seeds...)
}

func fuzzFiles(f *testing.F, name string, seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), name)
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := modelfile.Read(path)
		if err != nil {
			if strings.Contains(strings.TrimPrefix(err.Error(), path), "\n") {
				t.Errorf("no sentence: %q", err)
			}
			return
		}
		names := map[string]bool{}
		for _, l := range file.Layers {
			if names[l.Name] || l.Name == "" {
				t.Errorf("two layers are called %q", l.Name)
			}
			names[l.Name] = true
			if l.Declined == "" && l.Parameters() < 1 || l.Parameters() > 16*len(content)+1<<10 {
				t.Errorf("layer %s has %d parameters in a file of %d bytes", l.Name, l.Parameters(), len(content))
			}
		}
	})
}
