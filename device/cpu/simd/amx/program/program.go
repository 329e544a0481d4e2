// Package program has the programs of tile instructions that multiply panels, as data: the generator writes them as
// assembly, and the model runs them.
package program

// A Program multiplies a block of up to Tiles·16 rows by Strips strips of 16 columns. Its sums stay in tile registers
// while it goes through k.
type Program struct {
	Tiles, Strips int
}

// The largest programs. Sums take four of the eight registers at most; strips beyond two pay for one tile of rows
// alone, since that reads a strip once for each product.
const (
	MaxTiles  = 2
	MaxStrips = 4
	registers = 8

	// PeakTiles is the number of sums with which the peak is measured.
	PeakTiles = 4
)

// All are the programs, by tiles and strips.
func All() []Program {
	return []Program{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}}
}

// Own is the most strips of a program of so many tiles of rows that have a register each.
func Own(tiles int) int {
	if tiles == 1 {
		return 3
	}
	return MaxStrips / tiles
}

// C is the register of the sums of a tile of rows and a strip.
func (p *Program) C(tile, strip int) int { return tile*p.Strips + strip }

// A is the register of a tile of rows of the left factor.
func (p *Program) A(tile int) int { return p.Tiles*p.Strips + tile }

// B is the register of a strip of the right factor. Strips take turns where there are more than registers.
func (p *Program) B(strip int) int {
	first := p.Tiles*p.Strips + p.Tiles
	return first + strip%(registers-first)
}

// An Op is a tile instruction.
type Op int

// The instructions that programs have.
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

// Clear, Fetch and Leave are what goes before a block, or before one that is added to, and behind it.
func (p *Program) Clear() []Instr { return p.sums(Zero) }

// Fetch is ahead of a block that is added to.
func (p *Program) Fetch() []Instr { return p.sums(LoadC) }

// Leave stores a block.
func (p *Program) Leave() []Instr { return p.sums(Store) }

// Step multiplies a tile of each of the factors.
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
