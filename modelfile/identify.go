package modelfile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mostShort is the length of the longest name in an ID: tables have a column of IDs.
const mostShort = 24

// identify sets the IDs of the layers of a file, such as silero_vad:LSTM_81@1f3870be. A name that would
// be long there is the layer's number, from 1.
func identify(path string, layers []Layer) {
	base := filepath.Base(path)
	base = plain(strings.TrimSuffix(base, filepath.Ext(base)))
	for i := range layers {
		short := shortest(i, layers)
		if len(short) > mostShort {
			short = strconv.Itoa(i + 1)
		}
		layers[i].ID = fmt.Sprintf("%s:%s@%s", base, plain(short), hash(layers[i]))
	}
}

// Short is the name of the layer in its ID.
func (l Layer) Short() string {
	_, name, _ := strings.Cut(l.ID, ":")
	return name[:strings.LastIndexByte(name, '@')]
}

// shortest returns the shortest end of a layer's name, in whole parts of its path, that no other layer has.
func shortest(i int, layers []Layer) string {
	name := layers[i].Name
	for at := len(name); ; {
		if at = strings.LastIndexByte(name[:at], '/'); at < 0 {
			return name
		}
		end := name[at:]
		if !slices.ContainsFunc(layers, func(o Layer) bool { return o.Name != name && strings.HasSuffix("/"+o.Name, end) }) {
			return end[1:]
		}
	}
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
