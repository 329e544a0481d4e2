package pickle_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rnnbench/modelfile/pickle"
)

func read(text string) (any, error) {
	p, err := pickle.NewReader(strings.NewReader(text)).Read()
	return p.Value, err
}

// TestPython: pickles that Python 3.11 wrote, in protocols 2, 4 and 5.
func TestPython(t *testing.T) {
	type object = pickle.Object
	instance := func(module, name string, args pickle.Tuple) object {
		return object{Class: pickle.Global{Module: module, Name: name}, Args: args}
	}
	one := []any{int64(1)}
	list := &object{Class: pickle.Global{Module: "builtins", Name: "list"}, Items: one}
	attributes := &object{Class: pickle.Global{Module: "builtins", Name: "dict"}, Pairs: []pickle.Pair{{Key: "x", Value: int64(1)}}}
	a := instance("__main__", "A", pickle.Tuple{})
	a.State = attributes
	ordered := instance("collections", "OrderedDict", pickle.Tuple{})
	ordered.Pairs = []pickle.Pair{{Key: "a", Value: int64(2)}}
	set := object{Class: pickle.Global{Module: "builtins", Name: "set"}, Items: one}
	encoded := instance("_codecs", "encode", pickle.Tuple{"\x00ÿ", "latin1"})
	old := instance("__builtin__", "set", pickle.Tuple{list})
	frozen := object{Class: pickle.Global{Module: "builtins", Name: "frozenset"}, Items: one}
	for text, want := range map[string]any{
		"\x80\x02N.":                 nil,
		"\x80\x02\x88.":              true,
		"\x80\x02\x89.":              false,
		"\x80\x02K\x07.":             int64(7),
		"\x80\x02M,\x01.":            int64(300),
		"\x80\x02J\xfb\xff\xff\xff.": int64(-5),
		"\x80\x02\x8a\x06\x00\x00\x00\x00\x00\x01.":                                               int64(1 << 40),
		"\x80\x02\x8a\x06\x00\x00\x00\x00\x00\xff.":                                               int64(-1 << 40),
		"\x80\x02\x8a\x00.":                                                                       int64(0),
		"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@.":                                      pickle.Long("\x00\x00\x00\x00\x00\x00\x00\x00@"),
		"\x80\x02G?\xf8\x00\x00\x00\x00\x00\x00.":                                                 1.5,
		"\x80\x02X\x02\x00\x00\x00\xc3\xa9q\x00.":                                                 "é",
		"\x80\x02U\x02abq\x00.":                                                                   "ab",
		"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94.":                       "é",
		"\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00ab.":                                         "ab",
		"\x80\x04X\x03\x00\x00\x00\xed\xa0\x80.":                                                  pickle.Bytes("\xed\xa0\x80"),
		"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00C\x02\x00\xff\x94.":                          pickle.Bytes("\x00\xff"),
		"\x80\x05\x95\x0d\x00\x00\x00\x00\x00\x00\x00\x96\x02\x00\x00\x00\x00\x00\x00\x00ab\x94.": pickle.Bytes("ab"),
		"\x80\x02c_codecs\nencode\nq\x00X\x03\x00\x00\x00\x00\xc3\xbfq\x01X\x06\x00\x00\x00latin1q\x02\x86q\x03Rq\x04.": &encoded,
		"\x80\x02).":                           pickle.Tuple{},
		"\x80\x02K\x01\x85q\x00.":              pickle.Tuple{int64(1)},
		"\x80\x02(K\x01K\x02K\x03K\x04tq\x00.": pickle.Tuple{int64(1), int64(2), int64(3), int64(4)},
		"\x80\x02]q\x00K\x01ah\x00\x86q\x01.":  pickle.Tuple{list, list},
		"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00]\x94K\x01ah\x00\x86\x94.": pickle.Tuple{list, list},
		"\x80\x02]q\x00(K\x01e.":                                                     list,
		"\x80\x02}q\x00X\x01\x00\x00\x00xq\x01K\x01s.":                               attributes,
		"\x80\x02}q\x00(X\x01\x00\x00\x00xq\x01K\x01u.":                              attributes,
		"\x80\x04\x95\x07\x00\x00\x00\x00\x00\x00\x00\x8f\x94(K\x01\x90.":            &set,
		"\x80\x04(K\x01\x91\x94.":                                                    &frozen,
		"\x80\x02c__builtin__\nset\nq\x00]q\x01K\x01a\x85q\x02Rq\x03.":               &old,
		"\x80\x02c__main__\nA\nq\x00)\x81q\x01}q\x02X\x01\x00\x00\x00xq\x03K\x01sb.": &a,
		"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x08__main__\x94\x8c\x01A\x94\x93\x94)\x81\x94}\x94\x8c\x01x\x94K\x01sb.": &a,
		"\x80\x04\x8c\x08__main__\x94\x8c\x01A\x94\x93\x94)}\x8c\x01xK\x01s\x92.":                                                  &a,
		"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\x00\x00\x00aq\x02K\x02s.":                                            &ordered,
		"\x80\x02X\x01\x00\x00\x00aQ.": pickle.Persistent{ID: "a"},
		"\x80\x02K\x01(K\x021.":        int64(1),
		"\x80\x02K\x01K\x020.":         int64(1),
		"\x80\x02K\x012\x86.":          pickle.Tuple{int64(1), int64(1)},
	} {
		if got, err := read(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v (%v), not %#v", text, got, err, want)
		}
		for n := range len(text) {
			if got, err := read(text[:n]); err == nil || err.Error() != "pickle: it is truncated" {
				t.Errorf("%q, of which %d bytes are left, is %#v (%v)", text, n, got, err)
			}
		}
	}
}

// TestSequence: pickles follow one another, and something else.
func TestSequence(t *testing.T) {
	r := pickle.NewReader(strings.NewReader("\x80\x02K\x01.\x80\x02K\x02Q.rest"))
	if p, err := r.Read(); err != nil || p.Value != int64(1) || len(p.Persistent) > 0 {
		t.Error(p, err)
	}
	if p, err := r.Read(); err != nil || p.Value != any(pickle.Persistent{ID: int64(2)}) || fmt.Sprint(p.Persistent) != "[2]" || r.Offset() != 11 {
		t.Error(p, err, r.Offset())
	}
}

// TestWrong: what is no pickle of PyTorch is refused, without taking much memory.
func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		"\x80\x06N.":                            "it is of protocol 6, but 5 is the last that is known",
		"\x80\x02I1\n.":                         "opcode 0x49 at byte 2 is not one that PyTorch writes",
		"\x80\x02.":                             "byte 2 takes a value that is not there",
		"\x80\x02K\x01K\x01.":                   "it ends with 1 values too many",
		"\x80\x02K\x01(.":                       "byte 5 takes a value that is not there",
		"\x80\x02K\x01(0.":                      "byte 5 takes a value that is not there",
		"\x80\x02t.":                            "byte 2 needs a mark that is not there",
		"\x80\x02h\x07.":                        "byte 3 refers to value 7, which is not there",
		"\x80\x02K\x01K\x01R.":                  "byte 6 calls something without a tuple",
		"\x80\x02K\x01K\x01b.":                  "byte 6 changes what is no object",
		"\x80\x02)K\x01a.":                      "byte 5 changes what is no object",
		"\x80\x02}(K\x01u.":                     "byte 6 has a key without a value",
		"\x80\x04K\x01K\x01\x93.":               "byte 6 names something without a string",
		"\x80\x02c" + strings.Repeat("a", 2000): "a name has more than 1000 characters",
		"\x80\x02X\xff\xff\xff\xff":             "its values take more than 256 MiB",
		"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffa":    "its values take more than 256 MiB",
		"\x80\x02X\xff\xff\xff\x0ea":                       "it is truncated",
		"\x80\x02]q\x00" + strings.Repeat("]", 1<<21):      "its values take more than 256 MiB",
		"\x80\x02]q\x00(" + strings.Repeat("h\x00", 1<<23): "its values take more than 256 MiB",
		"\x80\x02" + strings.Repeat("(", 1<<23):            "its values take more than 256 MiB",
	} {
		if _, err := read(text); err == nil || err.Error() != "pickle: "+want {
			t.Errorf("%.40q gives %v, not %q", text, err, want)
		}
	}
}

// FuzzPickle: no text makes the reader fail otherwise than by an error, or read a byte twice.
func FuzzPickle(f *testing.F) {
	for _, text := range []string{
		"\x80\x02}q\x00(X\x01\x00\x00\x00xq\x01K\x01u.", "\x80\x04\x8c\x08__main__\x94\x8c\x01A\x94\x93\x94)}\x8c\x01xK\x01s\x92.",
		"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "\x80\x02]q\x00(h\x00K\x01\x86G?\xf8\x00\x00\x00\x00\x00\x00Qe.",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := pickle.NewReader(strings.NewReader(string(text)))
		for {
			_, err := r.Read()
			if r.Offset() > int64(len(text)) {
				t.Fatalf("%d bytes are read of %d", r.Offset(), len(text))
			}
			if err != nil {
				if strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
					t.Errorf("no sentence: %q", err)
				}
				return
			}
		}
	})
}
