package pointwise

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
)

// Rows are whole rows of a matrix, and how they lie in memory of a host program: row r begins
// Offsets[r] elements behind an address, a table of 32-bit words on the GPU; 0: one after another. A
// row with the offset Nowhere has no memory there.
type Rows struct {
	At         driver.Pointer
	Element    driver.Element
	Rows, Cols int
	Offsets    driver.Pointer
	Quads      bool // four elements side by side never begin at an offset that is no multiple of four
}

// Nowhere is the offset of rows without memory of the host program.
const Nowhere = math.MaxUint32

// MostMoves is how many Rows a launch moves at most: their table is part of its arguments.
const MostMoves = 64

const (
	moveWords  = 5       // of an entry of the table
	mostBlocks = 1 << 10 // of an entry
	blockMoves = 1 << 12 // elements for each block, up to that
)

// Moves moves rows from memory of the host program, or with out, to it. SetMove says where that is
// before each launch. Unless report is 0, the launch leaves the status word there.
func Moves(t *launch.Target, rows []Rows, out bool, report driver.Pointer) launch.Command {
	status := driver.Pointer(t.Status())
	if report == 0 {
		report = status
	}
	table := make([]uint64, MostMoves*moveWords)
	blocks := 0
	for i, r := range rows {
		codes := int(r.Element)<<2 | ints.FromBool(out)<<4
		copy(table[i*moveWords:], []uint64{0, uint64(r.At), uint64(r.Offsets), pair(r.Rows, r.Cols), pair(codes, blocks)})
		blocks += min(max(1, ints.CeilDiv(r.Rows*r.Cols, blockMoves)), mostBlocks)
	}
	c := launch.New(t.File(file, "moves", "MOVES", MostMoves), [3]int{max(1, blocks), 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(len(rows)), uint64(status), uint64(report))
	c.Launch.Table = table
	c.Launch.Pack()
	return c
}

// SetMove says that entry i of a launch of Moves, of rows r, moves elements e at an address of the
// host program; 0: none.
func SetMove(l *driver.Launch, i int, r *Rows, host uintptr, e driver.Element) {
	const types = 3 | 32
	codes := uint64(e)
	if r.Quads && host%uintptr(4*e.Bytes()) == 0 && int(r.At)%(4*r.Element.Bytes()) == 0 {
		codes |= 32
	}
	entry := l.Table[i*moveWords : (i+1)*moveWords]
	entry[0], entry[4] = uint64(host), entry[4]&^types|codes
}
