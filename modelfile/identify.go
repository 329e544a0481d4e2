package modelfile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

// identify sets the IDs of the layers of a file, such as silero_vad:LSTM_81@1f3870be.
func identify(path string, layers []Layer) {
	base := filepath.Base(path)
	base = plain(strings.TrimSuffix(base, filepath.Ext(base)))
	for i := range layers {
		layers[i].ID = fmt.Sprintf("%s:%s@%s", base, plain(shortest(i, layers)), hash(layers[i]))
	}
}

// shortest returns the shortest end of a layer's name, in whole parts of its path, that no other layer has.
func shortest(i int, layers []Layer) string {
	name := layers[i].Name
	for at := len(name); at > 0; {
		at = strings.LastIndexByte(name[:at], '/')
		if at < 0 {
			break
		}
		end, unique := name[at:], true
		for j, other := range layers {
			unique = unique && (j == i || !strings.HasSuffix("/"+other.Name, end))
		}
		if unique {
			return end[1:]
		}
	}
	return name
}

// plain replaces what has a meaning in lists of values, in points and in shells.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(`,;:=@!<>|&$"'\\`+"`", r) || r == 0x7f {
			return '_'
		}
		return r
	}, name)
}

// hash identifies what a layer computes: 8 digits of SHA-256.
func hash(l Layer) string {
	h := sha256.New()
	fmt.Fprintln(h, l.Point, l.Zeros)
	for _, t := range l.Tensors {
		fmt.Fprintln(h, t.Name, t.Rows, t.Cols)
		_ = binary.Write(h, binary.LittleEndian, t.Values) // a hash takes everything
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:8]
}
