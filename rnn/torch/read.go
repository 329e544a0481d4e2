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
		i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == p.Name+".npy" })
		if i < 0 {
			return fmt.Errorf("torch: there is no array %s", p.Name)
		}
		f, err := z.File[i].Open()
		if err != nil {
			return fmt.Errorf("torch: array %s: %w", p.Name, err)
		}
		if err := errors.Join(p.read(f), f.Close()); err != nil {
			return fmt.Errorf("torch: array %s: %w", p.Name, err)
		}
	}
	return nil
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
	var front [8]byte
	if _, err := io.ReadFull(r, front[:]); err != nil || string(front[:6]) != "\x93NUMPY" {
		return errors.New("it is no .npy file")
	}
	length := make([]byte, 2)
	if front[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return errors.New("it is cut short")
	}
	n := int64(binary.LittleEndian.Uint32(append(slices.Clone(length), 0, 0)))
	if n > mostHeader {
		return fmt.Errorf("its header has %d bytes, more than %d", n, mostHeader)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return errors.New("it is cut short")
	}
	dtype, err := p.fits(string(header))
	if err != nil {
		return err
	}
	return p.fill(r, dtype)
}

// fits checks a header against the place, and returns the type of the values.
func (p Place) fits(header string) (string, error) {
	descr, shape := descrOf.FindStringSubmatch(header), shapeOf.FindStringSubmatch(header)
	if descr == nil || shape == nil {
		return "", errors.New("its header has no descr and shape")
	}
	want := make([]string, len(p.Shape))
	for i, size := range p.Shape {
		want[i] = strconv.Itoa(size)
	}
	have := strings.FieldsFunc(shape[1], func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
	switch {
	case !slices.Equal(have, want):
		return "", fmt.Errorf("its shape is (%s), not (%s)", clipped(strings.Join(have, ", ")), strings.Join(want, ", "))
	case fortranOf.MatchString(header) && len(want) > 1:
		return "", errors.New("it is in Fortran order: write it in C order")
	case descr[1] != "<f4" && descr[1] != "<f8":
		return "", fmt.Errorf("its type is %q: write <f4 or <f8", clipped(descr[1]))
	}
	return descr[1], nil
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
	if n, err := io.ReadFull(r, buf[:1]); n > 0 {
		return errors.New("it has more values than its shape says")
	} else if !errors.Is(err, io.EOF) { // a checksum that does not fit
		return err
	}
	return nil
}
