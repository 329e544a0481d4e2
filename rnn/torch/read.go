package torch

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Place is where ReadNPZ puts an array.
type Place struct {
	Name   string
	Shape  []int
	Values []float32 // as many as the shape has, in row-major order
}

// ReadNPZ reads arrays from a file in the format of numpy.savez. The file need not be trusted: no
// more is read than places have room for. Arrays may be float32 or float64, and compressed. Arrays
// that are not asked for are skipped.
//
// Note: github.com/sbinet/npyio makes room for whatever shape a header claims.
func ReadNPZ(r io.ReaderAt, size int64, places []Place) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return fmt.Errorf("torch: it is no .npz file: %w", err)
	}
	for _, p := range places {
		if err := visit(z, p.Name, p.read); err != nil {
			return err
		}
	}
	return nil
}

// visit calls read with the .npy file of an array.
func visit(z *zip.Reader, name string, read func(io.Reader) error) error {
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name+".npy" })
	if i < 0 {
		return fmt.Errorf("torch: there is no array %s", name)
	}
	f, err := z.File[i].Open()
	if err != nil {
		return fmt.Errorf("torch: array %s: %w", name, err)
	}
	if err := errors.Join(read(f), f.Close()); err != nil {
		return fmt.Errorf("torch: array %s: %w", name, err)
	}
	return nil
}

// ReadBytes reads an array of bytes from a file in the format of numpy.savez: a vector of int64
// with values from 0 to 255, of at most most values. The file need not be trusted.
func ReadBytes(r io.ReaderAt, size int64, name string, most int) ([]byte, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("torch: it is no .npz file: %w", err)
	}
	var out []byte
	err = visit(z, name, func(r io.Reader) error {
		descr, shape, err := readHeader(r)
		if err != nil {
			return err
		}
		if descr != "<i8" || len(shape) != 1 {
			return fmt.Errorf("it is %q of shape (%s), not a vector of <i8", clipped(descr), clipped(strings.Join(shape, ", ")))
		}
		n, err := strconv.Atoi(shape[0])
		if err != nil || n > most {
			return fmt.Errorf("it has %s values, more than %d", clipped(shape[0]), most)
		}
		values := make([]int64, n)
		if err := binary.Read(r, binary.LittleEndian, values); err != nil {
			return errors.New("it is cut short")
		}
		for _, v := range values {
			if v < 0 || v > 255 {
				return fmt.Errorf("it holds %d, which is no byte", v)
			}
			out = append(out, byte(v))
		}
		return atEnd(r)
	})
	return out, err
}

// mostHeader is the length of the longest header that is read, in bytes: some 100 are
// usual.
const mostHeader = 1 << 12

var (
	descrOf   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([^'"]*)['"]`)
	fortranOf = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*True`)
	shapeOf   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9,\s]*)\)`)
)

// read reads an .npy file.
func (p Place) read(r io.Reader) error {
	descr, shape, err := readHeader(r)
	if err != nil {
		return err
	}
	if err := p.fits(descr, shape); err != nil {
		return err
	}
	return p.fill(r, descr)
}

// readHeader reads the header of an .npy file: the type of its values, and its shape.
func readHeader(r io.Reader) (descr string, shape []string, err error) {
	var front [8]byte
	if _, err := io.ReadFull(r, front[:]); err != nil || string(front[:6]) != "\x93NUMPY" {
		return "", nil, errors.New("it is no .npy file")
	}
	length := make([]byte, 2)
	if front[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return "", nil, errors.New("it is cut short")
	}
	n := int64(binary.LittleEndian.Uint32(append(slices.Clone(length), 0, 0)))
	if n > mostHeader {
		return "", nil, fmt.Errorf("its header has %d bytes, more than %d", n, mostHeader)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return "", nil, errors.New("it is cut short")
	}
	d, s := descrOf.FindSubmatch(header), shapeOf.FindSubmatch(header)
	if d == nil || s == nil {
		return "", nil, errors.New("its header has no descr and shape")
	}
	shape = strings.FieldsFunc(string(s[1]), func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
	if fortranOf.Match(header) && len(shape) > 1 {
		return "", nil, errors.New("it is in Fortran order: write it in C order")
	}
	return string(d[1]), shape, nil
}

// fits checks a header against the place.
func (p Place) fits(descr string, shape []string) error {
	want := make([]string, len(p.Shape))
	for i, size := range p.Shape {
		want[i] = strconv.Itoa(size)
	}
	switch {
	case !slices.Equal(shape, want):
		return fmt.Errorf("its shape is (%s), not (%s)", clipped(strings.Join(shape, ", ")), strings.Join(want, ", "))
	case descr != "<f4" && descr != "<f8":
		return fmt.Errorf("its type is %q: write <f4 or <f8", clipped(descr))
	}
	return nil
}

// clipped is s, cut to a length that fits a message.
func clipped(s string) string { return s[:min(len(s), 60)] }

// fill reads the values, and reports missing and extra ones.
func (p Place) fill(r io.Reader, dtype string) error {
	size := 4
	if dtype == "<f8" {
		size = 8
	}
	buf := make([]byte, min(1<<18, size*(len(p.Values)+1)))
	for rest := p.Values; len(rest) > 0; {
		n := min(len(rest), len(buf)/size)
		if _, err := io.ReadFull(r, buf[:n*size]); err != nil {
			return errors.New("it is cut short")
		}
		for i := range n {
			if size == 4 {
				rest[i] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:]))
			} else {
				rest[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(buf[8*i:])))
			}
		}
		rest = rest[n:]
	}
	return atEnd(r)
}

// atEnd returns an error unless r has ended, with a checksum that fits.
func atEnd(r io.Reader) error {
	var one [1]byte
	if n, err := io.ReadFull(r, one[:]); n > 0 {
		return errors.New("it has more values than its shape says")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
