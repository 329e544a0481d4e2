package torch

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Array is a named array of any rank, its values in row-major order.
type Array struct {
	Name   string
	Shape  []int // empty: a scalar
	Values any   // []float32, []float64, []int64 or, for a scalar, string
}

// WriteNPZ writes arrays in the format of numpy.savez: a zip archive of .npy
// files, not compressed. Equal arrays make equal bytes.
//
// Note: github.com/sbinet/npyio writes 3-dimensional arrays of sizes known at
// compile time only, and no strings.
func WriteNPZ(w io.Writer, arrays []Array) error {
	z := zip.NewWriter(w)
	names := make(map[string]bool)
	for _, a := range arrays {
		if names[a.Name] {
			return fmt.Errorf("torch: two arrays are called %q", a.Name)
		}
		names[a.Name] = true
		f, err := z.CreateHeader(&zip.FileHeader{
			Name: a.Name + ".npy", Method: zip.Store,
			Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), // the earliest that zip knows, as numpy.savez has it
		})
		if err != nil {
			return fmt.Errorf("torch: %w", err)
		}
		if err := a.write(f); err != nil {
			return fmt.Errorf("torch: array %s: %w", a.Name, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("torch: %w", err)
	}
	return nil
}

// write writes a as an .npy file of version 1.0.
func (a Array) write(w io.Writer) error {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	switch v := a.Values.(type) {
	case []float32:
		return write(w, "<f4", a.Shape, n, v)
	case []float64:
		return write(w, "<f8", a.Shape, n, v)
	case []int64:
		return write(w, "<i8", a.Shape, n, v)
	case string:
		text := []rune(v)
		return write(w, fmt.Sprintf("<U%d", len(text)), a.Shape, n*len(text), text)
	}
	return fmt.Errorf("values are %T, not []float32, []float64, []int64 or string", a.Values)
}

// write writes the header and n values.
func write[N float32 | float64 | int64 | rune](w io.Writer, dtype string, shape []int, n int, values []N) error {
	if n != len(values) {
		return fmt.Errorf("shape %v has %d values, not %d", shape, n, len(values))
	}
	if _, err := w.Write(header(dtype, shape)); err != nil {
		return err
	}
	var buf []byte
	for chunk := range slices.Chunk(values, 1<<16) {
		var err error
		if buf, err = binary.Append(buf[:0], binary.LittleEndian, chunk); err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// header is magic, version, length and a Python dictionary, padded with spaces so that the values
// begin at a multiple of 64 bytes.
func header(dtype string, shape []int) []byte {
	var dims []string
	for _, d := range shape {
		dims = append(dims, strconv.Itoa(d))
	}
	tuple := strings.Join(dims, ", ")
	if len(dims) == 1 {
		tuple += ","
	}
	const front = len("\x93NUMPY\x01\x00") + 2
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, tuple)
	end := (front+len(dict)+1+63)/64*64 - front
	dict += strings.Repeat(" ", end-len(dict)-1) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return append(out, dict...)
}
