package amx

import (
	"math"

	"rnnbench/device/cpu/simd/amx/program"
)

// Model returns a unit that runs the programs in plain Go, as Intel's manual defines each
// instruction. It panics if a panel reads or writes outside of its memory.
func Model() *Unit {
	u := &Unit{peak: func(int) {}}
	for _, p := range program.All() {
		u.run[p.Tiles][p.Strips] = func(panel *Panel) { model(&p, panel) }
	}
	return u
}

// registers holds the tile registers and their shapes.
type registers struct {
	*Config
	tiles [8][TileRows][TileWords]uint32
}

func model(p *program.Program, panel *Panel) {
	r := &registers{Config: &panel.Config}
	for group := range panel.Groups {
		for block := range panel.Blocks {
			a := panel.A[block*panel.BlockRows*panel.ARow:]
			b := panel.B[group*p.Strips*panel.BStrip:]
			c := panel.C[block*panel.BlockRows*panel.CRow+group*p.Strips*TileWords:]
			begin := p.Clear()
			if panel.Accumulate {
				begin = p.Fetch()
			}
			r.run(begin, panel, a, b, c)
			for range panel.K - 1 {
				r.run(p.Step(), panel, a, b, c)
				a, b = a[panel.AStep:], b[panel.BStep:]
			}
			r.run(p.Step(), panel, a, b, c)
			r.run(p.Leave(), panel, a, b, c)
		}
	}
}

func (r *registers) run(code []program.Instr, p *Panel, a, b, c []float32) {
	for _, in := range code {
		rows, words := r.shape(in.Register)
		t := &r.tiles[in.Register]
		move := func(m []float32, at, stride int, f func(word *uint32, m *float32)) {
			for i := range rows {
				for j := range words {
					f(&t[i][j], &m[at+i*stride+j])
				}
			}
		}
		load := func(word *uint32, m *float32) { *word = math.Float32bits(*m) }
		switch in.Op {
		case program.Zero:
			*t = [TileRows][TileWords]uint32{}
		case program.LoadA:
			*t = [TileRows][TileWords]uint32{}
			move(a, in.Tile*TileRows*p.ARow, p.ARow, load)
		case program.LoadB:
			*t = [TileRows][TileWords]uint32{}
			move(b, in.Strip*p.BStrip, TileWords, load)
		case program.LoadC:
			*t = [TileRows][TileWords]uint32{}
			move(c, in.Tile*TileRows*p.CRow+in.Strip*TileWords, p.CRow, load)
		case program.Store:
			move(c, in.Tile*TileRows*p.CRow+in.Strip*TileWords, p.CRow, func(word *uint32, m *float32) { *m = math.Float32frombits(*word) })
		case program.Dot:
			r.dot(in.Register, in.A, in.B)
		}
	}
}

// dot is TDPBF16PS. It adds up products of even and of odd k separately, from zero, and then adds
// both sums to the register.
func (r *registers) dot(c, a, b int) {
	rows, words := r.shape(a)
	_, columns := r.shape(c)
	for i := range rows {
		var even, odd [TileWords]float32
		for k := range words {
			x := r.tiles[a][i][k]
			for j := range columns {
				y := r.tiles[b][k][j]
				even[j] = fma(x<<16, y<<16, even[j])
				odd[j] = fma(x, y, odd[j])
			}
		}
		for j := range columns {
			sum := flushed(even[j] + odd[j])
			t := &r.tiles[c][i][j]
			*t = math.Float32bits(flushed(flushed(math.Float32frombits(*t)) + sum))
		}
	}
}

// Pair is VDPBF16PS on one lane. It first adds the product of the upper halves of x and y, and then
// that of the lower halves.
func Pair(x, y uint32, sum float32) float32 {
	return fma(x<<16, y<<16, fma(x, y, flushed(sum)))
}

// fma adds the product of the BF16 in the upper halves of x and y to sum. It rounds once, with ties
// to even. Denormal factors and results are zero.
func fma(x, y uint32, sum float32) float32 {
	product := float64(bf16(x)) * float64(bf16(y)) // exact: 16 bits
	s := float64(sum)
	exact := product + s
	// Rounding to double and then to single precision may turn an inexact value into a tie. What
	// the first rounding lost then decides.
	lost := (product - (exact - (exact - product))) + (s - (exact - product))
	if bits := math.Float64bits(exact); lost != 0 && bits&1 == 0 && !math.IsInf(exact, 0) && lost == lost {
		if (lost > 0) == (exact > 0) {
			exact = math.Float64frombits(bits + 1)
		} else {
			exact = math.Float64frombits(bits - 1)
		}
	}
	return flushed(float32(exact))
}

func bf16(x uint32) float32 { return flushed(math.Float32frombits(x &^ 0xffff)) }

// flushed returns x, or zero with its sign if x is denormal.
func flushed(x float32) float32 {
	const least = 0x1p-126
	if x > -least && x < least {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}
