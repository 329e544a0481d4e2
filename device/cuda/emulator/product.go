package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"rnnbench/device/cuda/driver"
)

func (d *Driver) multiply(stream int, p *driver.Product) error {
	at := func(from driver.Pointer, e driver.Element, rows, cols, ld int) (get func(i, j int) float64, set func(i, j int, v float64), err error) {
		if cols > ld {
			return nil, nil, fmt.Errorf("emulator: rows of %d elements %d apart", cols, ld)
		}
		mem, err := d.view(from, int64((rows-1)*ld+cols)*int64(e.Bytes()))
		if e == driver.Single {
			return func(i, j int) float64 {
					return float64(math.Float32frombits(binary.LittleEndian.Uint32(mem[4*(i*ld+j):])))
				}, func(i, j int, v float64) {
					binary.LittleEndian.PutUint32(mem[4*(i*ld+j):], math.Float32bits(float32(v)))
				}, err
		}
		return func(i, j int) float64 { return float64(e.Widen(binary.LittleEndian.Uint16(mem[2*(i*ld+j):]))) },
			func(i, j int, v float64) { binary.LittleEndian.PutUint16(mem[2*(i*ld+j):], e.Narrow(float32(v))) }, err
	}
	shape := func(t bool, rows, cols int) (int, int) {
		if t {
			return cols, rows
		}
		return rows, cols
	}
	q := *p
	ar, ac := shape(p.TransA, p.M, p.K)
	br, bc := shape(p.TransB, p.K, p.N)
	a, _, err1 := at(p.A, p.Operands, ar, ac, p.LdA)
	b, _, err2 := at(p.B, p.Operands, br, bc, p.LdB)
	c, set, err3 := at(p.C, p.Result, p.M, p.N, p.LdC)
	scale := func(i int) float64 { return float64(1 - i) }
	if q.Accumulate {
		scale = func(int) float64 { return 1 }
	}
	var err4 error
	if q.Scale != 0 {
		var factors func(i, j int) float64
		factors, _, err4 = at(q.Scale, driver.Single, 1, 2, 2)
		scale = func(i int) float64 { return factors(0, i) }
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	if d.Dry {
		return d.push(command{stream: stream, wait: -1, record: -1})
	}
	return d.push(command{stream: stream, wait: -1, record: -1, do: func() error {
		for i := range q.M {
			for j := range q.N {
				sum := 0.0
				for k := range q.K {
					ai, aj := shape(q.TransA, i, k)
					bi, bj := shape(q.TransB, k, j)
					x, y := a(ai, aj), b(bi, bj)
					if q.TF32 {
						x, y = tf32(x), tf32(y)
					}
					sum += x * y
				}
				sum *= scale(0)
				if by := scale(1); by != 0 {
					sum += by * c(i, j)
				}
				set(i, j, sum)
			}
		}
		return nil
	}})
}

// tf32 rounds v to ten bits of mantissa.
func tf32(v float64) float64 {
	bits := math.Float32bits(float32(v))
	return float64(math.Float32frombits((bits + 0xfff + bits>>13&1) &^ 0x1fff))
}
