// Package amx multiplies matrices of BF16 in the tile registers of a processor (Intel AMX).
//
// A panel is some rows by groups of strips (see simd.StripWidth). Package program has the programs
// of tile instructions that multiply panels. The generator of package simd turns them into
// assembly. Model runs them in plain Go on any machine, so that tests check the packing and the
// programs everywhere.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and
// volume 2, TDPBF16PS.
package amx

import (
	"encoding/binary"

	"rnnbench/device/cpu/simd/amx/program"
)

// A Panel is one call. It computes, for blocks of rows and for groups of strips of 16 columns,
//
//	C = A·B  // or C += A·B
//
// The unit's program says how many strips form a group. A word is two elements of BF16 with
// neighbouring k, the first in its low half. All strides are in floats or words.
type Panel struct {
	A []float32 // [rows, K·words] words through ARow
	B []float32 // strips through BStrip, each [K·words, 16] words
	C []float32 // [rows, columns] through CRow

	ARow, BStrip, CRow int

	K         int // number of steps; Config says how many words each has
	AStep     int // words of a row of A from one step to the next
	BStep     int // words of a strip from one step to the next
	Blocks    int // number of blocks of rows
	BlockRows int // rows from one block to the next
	Groups    int // number of groups of strips

	Accumulate bool
	Config     Config
}

// A Config is the shape of the tile registers, as LDTILECFG reads it.
type Config [64]byte

// The most rows and words of a tile register.
const (
	TileRows  = 16
	TileWords = 16
	StepK     = 2 * TileWords // elements of a row of A in a step
	tileBytes = 4 * TileRows * TileWords
)

// Set shapes the registers for a program, with blocks of so many rows and steps of so many words of
// k. The last strip has so many columns. They may be fewer than 16 if each strip has a register of
// its own.
func (c *Config) Set(p *program.Program, rows, words, last int) {
	*c = Config{0: 1} // the palette
	shape := func(tile, rows, words int) {
		binary.LittleEndian.PutUint16(c[16+2*tile:], uint16(4*words))
		c[48+tile] = byte(rows)
	}
	for i := range p.Tiles {
		high := min(rows-i*TileRows, TileRows)
		shape(p.A(i), high, words)
		for j := range p.Strips {
			columns := TileWords
			if j == p.Strips-1 {
				columns = last
			}
			shape(p.C(i, j), high, columns)
			shape(p.B(j), words, columns)
		}
	}
}

func (c *Config) shape(tile int) (rows, words int) {
	return int(c[48+tile]), int(binary.LittleEndian.Uint16(c[16+2*tile:])) / 4
}

// A Unit runs panels. It is the processor's own or a model of it.
type Unit struct {
	run  [program.MaxTiles + 1][program.MaxStrips + 1]func(*Panel)
	peak func(n int)
}

// Run runs p with blocks of up to so many tiles of rows and groups of so many strips.
func (u *Unit) Run(p *Panel, tiles, strips int) { u.run[tiles][strips](p) }

// peakFLOPs is the number of operations of a round of peak.
const peakFLOPs = program.PeakTiles * 2 * TileRows * TileWords * StepK

// Peak multiplies tiles that stay in registers and returns the number of operations, about 2n.
func (u *Unit) Peak(n int) int64 {
	rounds := max(1, 2*n/peakFLOPs)
	u.peak(rounds)
	return int64(rounds) * peakFLOPs
}

// full gives all registers their largest shape.
var full = func() *Config {
	c := &Config{0: 1}
	for tile := range 8 {
		binary.LittleEndian.PutUint16(c[16+2*tile:], 4*TileWords)
		c[48+tile] = TileRows
	}
	return c
}()
