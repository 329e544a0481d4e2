// Package program defines, as data, the programs of tile instructions that multiply panels. The
// generator writes them as assembly, and the model runs them.
package program

// A Program multiplies a block of up to Tiles·16 rows by Strips strips of 16 columns. Its sums stay
// in tile registers for all k.
type Program struct {
	Tiles, Strips int
}

// The sizes of programs. Sums take at most four of the eight registers. More than two strips pay
// only with one tile of rows, since such a program reads a strip once for each product.
const (
	MaxTiles  = 2
	MaxStrips = 4
	registers = 8

	// PeakTiles is the number of sums in the measurement of the peak.
	PeakTiles = 4
)

// All returns the programs, ordered by tiles and strips.
func All() []Program {
	return []Program{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}}
}

// Own returns the most strips of a program with so many tiles of rows, if each strip has a register
// of its own.
func Own(tiles int) int {
	if tiles == 1 {
		return 3
	}
	return MaxStrips / tiles
}

// C returns the register of the sums of a tile of rows and a strip.
func (p *Program) C(tile, strip int) int { return tile*p.Strips + strip }

// A returns the register of a tile of rows of the left factor.
func (p *Program) A(tile int) int { return p.Tiles*p.Strips + tile }

// B returns the register of a strip of the right factor. Strips share registers if there are too
// few.
func (p *Program) B(strip int) int {
	first := p.Tiles*p.Strips + p.Tiles
	return first + strip%(registers-first)
}

// An Op is a tile instruction.
type Op int

// The instructions.
const (
	Zero  Op = iota // TILEZERO
	LoadA           // TILELOADD of a tile of rows
	LoadB           // TILELOADD of a strip
	LoadC           // TILELOADD of sums
	Dot             // TDPBF16PS: adds the product of registers A and B
	Store           // TILESTORED of sums
)

// An Instr is one instruction on a register. Tile and Strip say which part of a matrix it moves.
type Instr struct {
	Op          Op
	Register    int
	A, B        int // registers, of Dot
	Tile, Strip int
}

func (p *Program) sums(op Op) (all []Instr) {
	for i := range p.Tiles {
		for j := range p.Strips {
			all = append(all, Instr{Op: op, Register: p.C(i, j), Tile: i, Strip: j})
		}
	}
	return all
}

// Clear begins a block: it sets the sums to zero.
func (p *Program) Clear() []Instr { return p.sums(Zero) }

// Fetch begins a block that adds to C: it loads the sums.
func (p *Program) Fetch() []Instr { return p.sums(LoadC) }

// Leave ends a block: it stores the sums.
func (p *Program) Leave() []Instr { return p.sums(Store) }

// Step multiplies one step of k of both factors.
func (p *Program) Step() (all []Instr) {
	for i := range p.Tiles {
		all = append(all, Instr{Op: LoadA, Register: p.A(i), Tile: i})
	}
	for j := range p.Strips {
		all = append(all, Instr{Op: LoadB, Register: p.B(j), Strip: j})
		for i := range p.Tiles {
			all = append(all, Instr{Op: Dot, Register: p.C(i, j), A: p.A(i), B: p.B(j), Tile: i, Strip: j})
		}
	}
	return all
}
