// Package amx multiplies matrices of BF16 in the tile registers of a processor (Intel AMX).
//
// A panel is some rows by groups of strips (see simd.StripWidth), for which a program of tile instructions
// is written in package program. The generator of package simd turns the programs into assembly; Model runs them
// in plain Go on any machine, so that tests hold the packing and the programs to the truth everywhere.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and volume 2, TDPBF16PS.
package amx

import (
	"encoding/binary"

	"rnnbench/device/cpu/simd/amx/program"
)

// A Panel is one call. It computes, for blocks of rows and groups of strips of 16 columns, of which the unit takes
// so many at a time,
//
//	C = A·B  // or C += A·B
//
// A word is two elements of BF16, of neighbouring k, the first in its low half. All strides are in floats or words.
type Panel struct {
	A []float32 // [rows, K·words] words through ARow
	B []float32 // strips through BStrip, each [K·words, 16] words
	C []float32 // [rows, columns] through CRow

	ARow, BStrip, CRow int

	K         int // steps, each of as many words as Config says
	AStep     int // words of a row of A from step to step
	BStep     int // words of a strip from step to step
	Blocks    int // of rows
	BlockRows int // from block to block
	Groups    int // of strips

	Accumulate bool
	Config     Config
}

// A Config is the shape of the tile registers, as LDTILECFG reads it.
type Config [64]byte

// Rows and words of a tile register at most.
const (
	TileRows  = 16
	TileWords = 16
	StepK     = 2 * TileWords // elements of a row of A that a step takes
	tileBytes = 4 * TileRows * TileWords
)

// Set shapes the registers for a program: blocks of so many rows, steps of so many words of k, and as many columns of the
// last strip, which may be fewer than 16 where each strip has a register of its own.
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

// A Unit runs panels: the processor's own or the model of it.
type Unit struct {
	run  [program.MaxTiles + 1][program.MaxStrips + 1]func(*Panel)
	peak func(n int)
}

// Run runs p with blocks of up to so many tiles of rows, and groups of so many strips.
func (u *Unit) Run(p *Panel, tiles, strips int) { u.run[tiles][strips](p) }

// peakFLOPs are the operations of a round of peak.
const peakFLOPs = program.PeakTiles * 2 * TileRows * TileWords * StepK

// Peak multiplies tiles that stay in registers and returns how many operations that were, about 2n.
func (u *Unit) Peak(n int) int64 {
	rounds := max(1, 2*n/peakFLOPs)
	u.peak(rounds)
	return int64(rounds) * peakFLOPs
}

// full shapes all registers as large as they can be.
var full = func() *Config {
	c := &Config{0: 1}
	for tile := range 8 {
		binary.LittleEndian.PutUint16(c[16+2*tile:], 4*TileWords)
		c[48+tile] = TileRows
	}
	return c
}()
