package modelfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/x448/float16"

	"rnnbench/internal/safe"
)

// A number is a format of a tensor's values in a file, little-endian.
type number struct {
	name  string
	bytes int
	value func(b []byte) float32 // nil: it is not read
}

// The formats that weights have.
var (
	float64s = number{"float64", 8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }}
	float32s = number{"float32", 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }}
	float16s = number{"float16", 2, func(b []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(b)).Float32() }}
	bfloats  = number{"bfloat16", 2, func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }}
)

// floats reads n values from byte at of r. The caller has seen that they lie in the file.
func (k number) floats(r io.ReaderAt, at int64, n int) ([]float32, error) {
	values := make([]float32, n)
	buf := make([]byte, min(n, 1<<14)*k.bytes)
	for done := 0; done < n; {
		part := min(n-done, 1<<14)
		b := buf[:part*k.bytes]
		if _, err := r.ReadAt(b, at+int64(done*k.bytes)); err != nil {
			return nil, fmt.Errorf("it cannot be read at byte %d: %w", at, err)
		}
		for i := range part {
			values[done+i] = k.value(b[i*k.bytes:])
		}
		done += part
	}
	return values, nil
}

// most is the largest size that is read: of a dimension, and of a tensor in values. The sums and
// products of sizes in this package cannot overflow.
const most = 1 << 40

// count multiplies the sizes of a shape.
func count(shape []int) (int, error) {
	n := 1
	if len(shape) > 64 {
		return 0, fmt.Errorf("it has %d dimensions", len(shape))
	}
	for _, size := range shape {
		switch {
		case size < 0:
			return 0, fmt.Errorf("a size is %d", size)
		case size > most || n > most/max(size, 1):
			return 0, fmt.Errorf("its sizes %v are more than any file holds", shape)
		}
		n *= size
	}
	return n, nil
}

// short is a text from a file, for a message: on one line, and cut if it is long.
func short(text string) string {
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(safe.Text(text))
}
