package modelfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The format is that of github.com/huggingface/safetensors: 8 bytes with the length of a header, the
// header in JSON, and the tensors' bytes.

// mostHeader is the longest header in bytes. The library by which others read such files has the same limit.
const mostHeader = 100_000_000

// mostTensors is how many tensors a file may have: an entry takes more memory than its text.
const mostTensors = 1 << 20

func isSafetensors(s source) bool {
	var b [9]byte
	_, err := s.ReadAt(b[:], 0)
	length := binary.LittleEndian.Uint64(b[:])
	return strings.HasSuffix(s.path, ".safetensors") || err == nil && b[8] == '{' && length <= uint64(s.size)
}

func readSafetensors(s source) ([]Layer, error) {
	var b [8]byte
	if _, err := s.ReadAt(b[:], 0); err != nil {
		return nil, errors.New("it is truncated: it has no header")
	}
	length := binary.LittleEndian.Uint64(b[:])
	switch {
	case length > uint64(s.size-8):
		return nil, fmt.Errorf("it is truncated, or no safetensors: its header has %d bytes, and the file has %d", length, s.size)
	case length > mostHeader:
		return nil, fmt.Errorf("its header has %d bytes, more than %d", length, mostHeader)
	}
	header := make([]byte, length)
	if _, err := s.ReadAt(header, 8); err != nil {
		return nil, err
	}
	tensors, err := safeTensors(s, header)
	if err != nil {
		return nil, err
	}
	return layersOf(tensors)
}

// safeNumbers are the formats that weights have, and the sizes of the others in bits.
var (
	safeNumbers = map[string]number{"F64": float64s, "F32": float32s, "F16": float16s, "BF16": bfloats}
	safeBits    = map[string]int{
		"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
		"U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
	}
)

// An entry is what a header says of a tensor.
type entry struct {
	Type    string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // in the bytes after the header
	name    string
}

// safeTensors returns the tensors of a header, in its order.
func safeTensors(s source, header []byte) ([]stored, error) {
	entries, err := readHeader(header)
	if err != nil {
		return nil, err
	}
	data := 8 + int64(len(header))
	var tensors []stored
	for _, e := range entries {
		n, err := e.check(s.size - data)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", short(e.name), err)
		}
		kind, ok := safeNumbers[e.Type]
		if !ok {
			kind = number{name: short(e.Type)}
		}
		tensors = append(tensors, stored{name: e.name, shape: e.Shape, kind: kind, read: func() ([]float32, error) {
			return kind.floats(s, data+e.Offsets[0], n)
		}})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]))
	})
	for i, e := range entries[min(1, len(entries)):] {
		if before := entries[i]; e.Offsets[0] < before.Offsets[1] {
			return nil, fmt.Errorf("tensors %s and %s overlap", short(before.name), short(e.name))
		}
	}
	return tensors, nil
}

// readHeader reads the entries of a header, in its order.
func readHeader(header []byte) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("its header is not JSON of an object")
	}
	var entries []entry
	names := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New("its header is not JSON")
		}
		e := entry{name: key.(string)}
		switch {
		case len(e.name) > mostName:
			return nil, fmt.Errorf("the name of a tensor has %d letters: %d at most are read", len(e.name), mostName)
		case len(entries) == mostTensors:
			return nil, fmt.Errorf("it has more than %d tensors", mostTensors)
		case names[e.name]:
			return nil, fmt.Errorf("two tensors are called %s", short(e.name))
		case e.name == "__metadata__":
			err = d.Decode(new(map[string]string))
		default:
			err = d.Decode(&e)
			entries = append(entries, e)
		}
		if err != nil {
			return nil, fmt.Errorf("its header is wrong at %s", short(e.name))
		}
		names[e.name] = true
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("its header is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("its header goes on after its end")
	}
	return entries, nil
}

// check reports an entry that is wrong, where the file has size bytes of data. It returns the number of values.
func (e entry) check(size int64) (int, error) {
	n, err := count(e.Shape)
	if err != nil {
		return 0, err
	}
	if len(e.Offsets) != 2 {
		return 0, fmt.Errorf("it has %d offsets, not 2", len(e.Offsets))
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || to < from || to > size {
		return 0, fmt.Errorf("its bytes %d to %d are not in the file, which has %d after the header", from, to, size)
	}
	if bits, ok := safeBits[e.Type]; ok && int64(n)*int64(bits) != 8*(to-from) {
		return 0, fmt.Errorf("its shape %v is of %d values of type %s, but it has %d bytes", e.Shape, n, short(e.Type), to-from)
	}
	return n, nil
}
