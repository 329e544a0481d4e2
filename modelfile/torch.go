package modelfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"rnnbench/modelfile/pickle"
)

// A file of torch.save is a zip archive: data.pkl is a pickle, and data/KEY the values of a storage,
// to which the pickle refers. So is one of torch.jit.save. Before PyTorch 1.6 it was a sequence of
// pickles, and all storages after them.

// A torchFile is an opened file of torch.save.
type torchFile struct {
	source
	storages map[string]storage
	left     int // values that may still be read: tensors of one storage are no reason to take more memory
}

// A storage is where the values of one or more tensors lie.
type storage struct {
	at   int64
	size int64 // in bytes
}

func isTorch(s source) bool {
	var b [4]byte
	_, _ = s.ReadAt(b[:], 0) // of a shorter file, no more than that
	return bytes.Equal(b[:], []byte("PK\x03\x04")) || b[0] == 0x80 && b[1] >= 2 && b[1] <= 5 ||
		slices.Contains([]string{".pt", ".pth"}, path.Ext(s.path))
}

func readTorch(s source) ([]Layer, error) {
	f := &torchFile{source: s, storages: map[string]storage{}, left: int(min(s.size, most)) * 2}
	var b [4]byte
	_, _ = s.ReadAt(b[:], 0)
	read := f.readLegacy
	switch {
	case bytes.Equal(b[:], []byte("PK\x03\x04")):
		read = f.readZip
	case b[0] != 0x80:
		return nil, errors.New("it is no file of torch.save: it is neither a zip archive nor a pickle")
	}
	value, err := read()
	if err != nil {
		return nil, err
	}
	tensors, err := f.tensors(value)
	if err != nil {
		return nil, err
	}
	return layersOf(tensors)
}

// mostPickle is the longest pickle in bytes. Longer ones hold other things than the names of tensors.
const mostPickle = 1 << 28

// readZip reads the value of a zip archive.
func (f *torchFile) readZip() (any, error) {
	z, err := zip.NewReader(f, f.size)
	if err != nil {
		return nil, fmt.Errorf("it is truncated, or no file of torch.save: %w", err)
	}
	at := slices.IndexFunc(z.File, func(e *zip.File) bool { return path.Base(e.Name) == "data.pkl" })
	if at < 0 {
		return nil, errors.New("it is a zip archive, but none of torch.save: it has no data.pkl")
	}
	folder := strings.TrimSuffix(z.File[at].Name, "data.pkl")
	var root storage
	for _, e := range z.File {
		name, in := strings.CutPrefix(e.Name, folder)
		key, data := strings.CutPrefix(name, "data/")
		if !in || !data && name != "data.pkl" && name != "byteorder" {
			continue
		}
		from, err := e.DataOffset()
		if err != nil {
			return nil, fmt.Errorf("it is damaged: %s is not where the archive says: %w", short(e.Name), err)
		}
		part := storage{from, int64(min(e.UncompressedSize64, most))}
		switch {
		case e.Method != zip.Store:
			return nil, fmt.Errorf("%s is compressed, which torch.save does not do", short(e.Name))
		case part.at+part.size > f.size:
			return nil, fmt.Errorf("it is truncated: %s ends at byte %d", short(e.Name), part.at+part.size)
		case data:
			f.storages[key] = part
		case name == "data.pkl":
			root = part
		default:
			if order, err := io.ReadAll(f.section(part.at, min(part.size, 8))); err != nil || string(order) != "little" {
				return nil, errors.Join(err, fmt.Errorf("its byte order is %q: only little is read", order))
			}
		}
	}
	if root.size > mostPickle {
		return nil, fmt.Errorf("its data.pkl has %d bytes, more than %d", root.size, mostPickle)
	}
	p, err := pickle.NewReader(f.section(root.at, root.size)).Read()
	return p.Value, err
}

func (f *torchFile) section(at, size int64) io.Reader { return io.NewSectionReader(f, at, size) }

// magic begins the old format, after it is the version.
const magic = pickle.Long("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")

// readLegacy reads the value of the old format: the magic number, the version, what machine wrote it,
// the value, the keys of its storages, and the storages.
func (f *torchFile) readLegacy() (any, error) {
	r := pickle.NewReader(f.section(0, min(f.size, mostPickle)))
	var parts []pickle.Pickle
	for i := range 5 {
		p, err := r.Read()
		if err == nil && i == 0 && p.Value != magic {
			err = errors.New("it is a pickle, but not one of torch.save: save model.state_dict() by torch.save")
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if machine, ok := parts[2].Value.(*pickle.Object); ok && machine.Get("little_endian") == false {
		return nil, errors.New("its byte order is big: only little is read")
	}
	bytes := map[string]int{} // of a value, by key
	for _, id := range parts[3].Persistent {
		if class, key, _, ok := storageOf(pickle.Persistent{ID: id}); ok {
			bytes[key] = storageBytes[class]
		}
	}
	keys, _ := parts[4].Value.(*pickle.Object)
	if keys == nil {
		return nil, errors.New("it has no list of storages")
	}
	at := r.Offset()
	for _, k := range keys.Items {
		key, _ := k.(string)
		if bytes[key] == 0 {
			return nil, fmt.Errorf("storage %s is of no type that is known", short(key))
		}
		var length [8]byte
		if _, err := f.ReadAt(length[:], at); err != nil {
			return nil, fmt.Errorf("it is truncated: storage %s is missing", short(key))
		}
		n := binary.LittleEndian.Uint64(length[:])
		if n > uint64(f.size-at-8)/uint64(bytes[key]) {
			return nil, fmt.Errorf("it is truncated: storage %s has %d values", short(key), n)
		}
		f.storages[key] = storage{at + 8, int64(n) * int64(bytes[key])}
		at += 8 + int64(n)*int64(bytes[key])
	}
	return parts[3].Value, nil
}
