package gemm

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A skinny product has at most skinnyRows rows. By default our kernel may form it only if its right
// factor has at least skinnyFactor values.
const (
	skinnyRows   = 128
	skinnyFactor = 1 << 16
)

// A Skinny says how skinny.cu divides the products that share a packed right factor, and how that
// factor is stored.
type Skinny struct {
	length, columns int  // the factor's rows (terms of a sum) and columns (sums)
	fused           bool // a cell runs with the product
	gates           int  // the cell's gates; 1 if no cell is fused
	weights         driver.Element
	exact           bool // fp32: three tensor-core products for one, to keep its accuracy

	tiles  int // 16-column tiles per warp
	eights int // 8-row tiles per warp
	bands  int // warps side by side along the columns
	slices int // warps along the sum
}

// String describes the division.
func (n *Skinny) String() string {
	return fmt.Sprintf("%d×%d terms and columns in blocks of %d columns and %d rows, %d warps along the sum, cells fused: %v", n.length, n.columns, n.width(), n.rows(), n.slices, n.fused)
}

// width returns the number of columns of a block.
func (n Skinny) width() int { return 16 * n.tiles * n.bands }
func (n Skinny) rows() int  { return 8 * n.eights }

// chunks returns the number of a warp's pieces along the sum, of 64 bytes each.
func (n Skinny) chunks() int { return ints.CeilDiv(n.length*n.weights.Bytes(), 64*n.slices) }

// total returns the number of pieces of all warps.
func (n Skinny) total() int   { return n.chunks() * n.slices }
func (n Skinny) threads() int { return 32 * n.bands * n.slices }

// blocks returns the number of blocks across the columns.
func (n Skinny) blocks() int { return ints.CeilDiv(n.columns/n.gates, n.width()/n.gates) }

// Quads returns the size of the packed factor in units of 16 bytes.
func (n Skinny) Quads() int { return n.blocks() * n.tiles * n.bands * n.total() * 64 }

// shared returns the bytes of shared memory of a block: the sums of its slices.
func (n Skinny) shared() int { return 4 * n.slices * n.rows() * (n.width() + 4) }

// stages returns how many pieces a warp holds in registers. It multiplies one while the others
// arrive.
func (n Skinny) stages() int {
	left := 224 - 4*n.tiles*n.eights - 4*n.eights - 2*n.eights
	if n.exact {
		left -= 4 * n.eights
	}
	return max(2, min(4, left/(8*n.tiles+4*n.eights)))
}

// fold returns after how many pieces a warp adds its sums to those in shared memory; 0: at the end alone. In single
// precision, tensor cores add foldTerms terms at most in a long sum.
func (n *Skinny) fold() int {
	if !n.exact || n.length <= splitTerms {
		return 0
	}
	pieces := foldTerms * n.weights.Bytes() / 64
	return pieces / n.stages() * n.stages()
}

// foldTerms is how many terms of a long sum a tensor core adds to one another. It truncates the sum three times per
// eight terms; see splitTerms.
const foldTerms = 256

// SkinnyKnobs returns the knobs of skinny products if s has packed right factors.
func SkinnyKnobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		if g, ok := op.(schedule.Gemm); ok && g.B.M.Packed {
			return SkinnyKnobDocs()
		}
	}
	return nil
}

// SkinnyKnobDocs returns the knobs of skinny products.
func SkinnyKnobDocs() []knob.Knob {
	return []knob.Knob{
		{Name: "narrow", Doc: "skinny products (few rows): by this program's kernel, with the cell that follows fused (1) or apart (3), or by the vendor's library (2); 0: what is predicted to be the fastest", Values: []int{0, 1, 2, 3}},
		{Name: "narrowwidth", Doc: "columns of a block of a skinny product; 0: chosen", Values: []int{0, 16, 32, 48, 64, 96, 128, 192}},
		{Name: "narrowrows", Doc: "rows of a block of a skinny product; 0: chosen", Values: []int{0, 8, 16, 32, 64}},
	}
}

// chooseSkinny returns the division that is predicted to be the fastest of those that knobs allow.
// ok reports whether it beats the library or was asked for.
func chooseSkinny(n Skinny, rows, share int, k knob.Params, p driver.Properties) (Skinny, bool) {
	best, least := n, math.Inf(1)
	if !skinnyAsked(k) {
		if least = n.libraryNanoseconds(rows, share); n.fused {
			least += cellNanoseconds
		}
	}
	found := false
	free := func(name string, v int) bool { return k[name] == 0 || k[name] == v }
	for n := range n.divisions() {
		if n.tiles*n.eights > 16 || n.width()%n.gates != 0 || n.shared() > p.Shared ||
			!free("narrowwidth", n.width()) || !free("narrowrows", n.rows()) {
			continue
		}
		if t := n.nanoseconds(rows, share, p); t < least {
			best, least, found = n, t, true
		}
	}
	return best, found
}

// divisions yields all divisions, in blocks of eight warps.
func (n Skinny) divisions() iter.Seq[Skinny] {
	return func(yield func(Skinny) bool) {
		for _, n.tiles = range []int{1, 2, 3, 4} {
			for _, n.bands = range []int{1, 2, 4} {
				for _, n.eights = range []int{1, 2, 4, 8} {
					if n.slices = 8 / n.bands; !yield(n) {
						return
					}
				}
			}
		}
	}
}

// skinnyAsked reports whether knobs ask for skinny products of any size.
func skinnyAsked(k knob.Params) bool {
	return k["narrow"] == 1 || k["narrow"] == 3 || k["narrowwidth"]+k["narrowrows"] > 0
}

// A SkinnyPlan says which packed factors are stored for skinny products: those that nothing else
// reads. It also says which of these products are fused with a cell.
type SkinnyPlan struct {
	Factors map[int]*Skinny
	Fused   map[int]bool // by the product's node; its cell is the next node
}

// NewSkinnyPlan chooses among the packed factors of s. element says how each matrix is stored;
// factors in lower belong to stacked layers.
func NewSkinnyPlan(s *schedule.Schedule, element []driver.Element, k knob.Params, p driver.Properties, lower map[int]bool) SkinnyPlan {
	out := SkinnyPlan{Factors: map[int]*Skinny{}, Fused: map[int]bool{}}
	if k["narrow"] == 2 || p.Capability < 80 {
		return out
	}
	share := min(skinnyStreams(s), p.SMs)
	for id, u := range factorUses(s, k["narrow"] == 3) {
		m := s.Matrices[id]
		if u.other || u.rows == 0 || lower[id] || !skinnyAsked(k) && m.Elements() < skinnyFactor {
			continue
		}
		n := Skinny{length: m.Rows, columns: m.Cols, fused: u.gates > 0, gates: max(1, u.gates), weights: element[id], exact: s.Precision == schedule.FP32}
		best, ok := chooseSkinny(n, u.rows, share, k, p)
		if !ok && n.fused && k["narrow"] != 1 {
			n.fused, n.gates = false, 1
			best, ok = chooseSkinny(n, u.rows, share, k, p)
		}
		if ok {
			out.Factors[id] = &best
		}
	}
	for i, n := range s.Nodes {
		if g, ok := n.Op.(schedule.Gemm); ok && out.Factors[g.B.M.ID] != nil {
			out.Fused[i] = out.Factors[g.B.M.ID].fused
		}
	}
	return out
}

// skinnyStreams returns how many streams have products of few rows, at least 1.
func skinnyStreams(s *schedule.Schedule) int {
	on := map[int]bool{}
	for _, n := range s.Nodes {
		if g, ok := n.Op.(schedule.Gemm); ok && g.B.M.Packed && g.A.Rows <= skinnyRows {
			on[n.Stream] = true
		}
	}
	return max(1, len(on))
}

// A use says how a packed factor is read.
type use struct {
	rows  int  // of the largest product
	gates int  // of the cell after each product; 0: they differ or some have no cell; -1: no product yet
	other bool // something else than a skinny product by the whole factor reads it
}

// factorUses returns how the packed factors of s are read, by matrix. apart: no cell is fused.
func factorUses(s *schedule.Schedule, apart bool) map[int]*use {
	uses := map[int]*use{}
	of := func(m *schedule.Matrix) *use {
		if uses[m.ID] == nil {
			uses[m.ID] = &use{gates: -1}
		}
		return uses[m.ID]
	}
	visit := func(op schedule.Op, gates func() int) {
		if g, ok := op.(schedule.Gemm); ok && g.B.M.Packed {
			of(g.B.M).product(g, gates())
			return
		}
		for v := range schedule.Accesses(op) {
			if pack, ok := op.(schedule.Pack); v.M.Packed && !(ok && pack.Dst == v && v == v.M.All()) {
				of(v.M).other = true
			}
		}
	}
	for _, op := range s.Prepare {
		visit(op, func() int { return 0 })
	}
	for i, n := range s.Nodes {
		visit(n.Op, func() int {
			if apart {
				return 0
			}
			return gatesBehind(s, i)
		})
	}
	return uses
}

// product notes a product that is followed by a cell of so many gates.
func (u *use) product(g schedule.Gemm, gates int) {
	if u.gates < 0 {
		u.gates = gates
	} else if u.gates != gates {
		u.gates = 0
	}
	rows, _, _ := g.Sizes()
	u.rows = max(u.rows, rows)
	u.other = u.other || g.TransA || g.TransB || g.B != g.B.M.All() || rows > skinnyRows
}

// gatesBehind returns the number of gates of a cell that can be fused with the product at node i;
// 0: none can. The cell is the next node, on the same stream. It reads all of the product, and
// writes nothing that other units' products still read.
func gatesBehind(s *schedule.Schedule, i int) int {
	g := s.Nodes[i].Op.(schedule.Gemm)
	if i+1 >= len(s.Nodes) || s.Nodes[i+1].Stream != s.Nodes[i].Stream || g.Accumulate {
		return 0
	}
	c, ok := s.Nodes[i+1].Op.(schedule.Cell)
	if !ok || c.R != g.C {
		return 0
	}
	for _, w := range c.Writes() {
		if w.M == g.A.M && w.Row < g.A.Row+g.A.Rows && g.A.Row < w.Row+w.Rows && w.Col < g.A.Col+g.A.Cols && g.A.Col < w.Col+w.Cols {
			return 0
		}
		if w.M == g.C.M {
			return 0
		}
	}
	return c.Cell.Recurrent
}

// PackSkinny packs the right factor of skinny products.
func PackSkinny(t *launch.Target, op schedule.Pack, n *Skinny) launch.Command {
	term, column := op.Src.M.Cols, 1
	if op.Trans {
		term, column = 1, op.Src.M.Cols
	}
	count := n.Quads()
	return launch.New(t.File(file, "tiles", "FROM", t.Element(op.Src), "W", n.weights, "GATES", n.gates, "COLUMNS", n.width()),
		[3]int{min(ints.CeilDiv(count, launch.BlockSize), launch.MaxGrid), 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(t.At(op.Src)), uint64(term), uint64(column), uint64(t.At(op.Dst)), uint64(count), uint64(n.total()), uint64(n.length), uint64(n.columns/n.gates))
}

// SkinnyProduct launches a skinny product without a cell.
func SkinnyProduct(t *launch.Target, op schedule.Gemm, n *Skinny) launch.Command {
	out := fmt.Sprintf(`struct Out {
  enum { GATES = 1, READS = %d };
  %v* c;
  int ldc;
  __device__ void read(int r, int u, float* v) const { if (READS) v[0] = widen(c[(long long)r * ldc + u]); }
  __device__ void write(int r, int u, const float* v, const float* z) const { narrow(c[(long long)r * ldc + u], READS ? v[0] + z[0] : z[0]); }
};
`, ints.FromBool(op.Accumulate), t.Element(op.C))
	plain := *n
	plain.gates = 1
	return skinnyLaunch(t, op, &plain, "gemm", out, fmt.Sprintf(", %v* c, int ldc", t.Element(op.C)), "out.c = c, out.ldc = ldc;", uint64(t.At(op.C)), uint64(op.C.M.Cols))
}

// SkinnyCell launches a skinny product fused with the cell after it. keep: the product itself is
// written as well.
func SkinnyCell(t *launch.Target, op schedule.Gemm, c schedule.Cell, n *Skinny, keep bool) launch.Command {
	p := c.Program()
	groups := slices.DeleteFunc(t.Groups(p, c.Vector), func(g codegen.Group) bool { return g.Name == codegen.GroupName(cell.Ref{Kind: cell.R}) })
	reads, writes := p.Vectors()
	reads = slices.DeleteFunc(reads, func(r cell.Ref) bool { return r.Kind == cell.R })
	var text, set strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	resets := !c.Keep.Empty() // after all others, the column that says which sequences go on
	if resets {
		groups = append(groups, codegen.Group{Name: "g_goes", Element: t.Element(c.Keep), View: c.Keep})
	}
	line("struct Out {\n  enum { GATES = %d, READS = %d };\n  %v* c;\n  int ldc, hidden, keep;", n.gates, len(reads)+ints.FromBool(resets), t.Element(op.C))
	set.WriteString("out.c = c, out.ldc = ldc, out.hidden = hidden, out.keep = keep;")
	args := []uint64{uint64(t.At(op.C)), uint64(op.C.M.Cols), uint64(ints.FromBool(keep))}
	for _, g := range groups {
		qualifier := "const "
		if g.Written {
			qualifier = ""
		}
		line("  %s%v* %s;\n  int ld_%s;", qualifier, g.Element, g.Name, g.Name)
		fmt.Fprintf(&set, " out.%s = %s, out.ld_%s = ld_%s;", g.Name, g.Name, g.Name, g.Name)
		args = append(args, uint64(t.At(g.View)), t.Stride(g.View))
	}
	place := func(r cell.Ref) string {
		return fmt.Sprintf("%s[(long long)r * ld_%s + %d * hidden + u]", codegen.GroupName(r), codegen.GroupName(r), codegen.Offset(r))
	}
	line("  __device__ void read(int r, int u, float* v) const {")
	for i, r := range reads {
		line("    v[%d] = widen(%s);", i, place(r))
	}
	if resets {
		line("    v[%d] = widen(g_goes[(long long)r * ld_g_goes]);", len(reads))
	}
	line("  }\n  __device__ void write(int r, int u, const float* v, const float* z) const {")
	known := slices.Clone(reads)
	kept := func(r cell.Ref, value string) string {
		if c.KeepOf(r).Empty() {
			return value
		}
		return fmt.Sprintf("v[%d] != 0 ? %s : 0", len(reads), value)
	}
	for i, r := range reads {
		line("    float %v = %s;", r, kept(r, fmt.Sprintf("v[%d]", i)))
	}
	for g := range n.gates {
		r := cell.Ref{Kind: cell.R, Index: g}
		line("    float %v = %s;", r, kept(r, fmt.Sprintf("z[%d]", g)))
		known = append(known, r)
		line("    if (keep) narrow(c[(long long)r * ldc + %d * hidden + u], z[%d]);", g, g)
	}
	text.WriteString(codegen.Statements(p, "    ", known))
	for _, r := range writes {
		line("    narrow(%s, %v);", place(r), r)
	}
	line("  }\n};")
	return skinnyLaunch(t, op, n, pointwise.CellName(c), text.String(), fmt.Sprintf(", %v* c, int ldc, int keep%s", t.Element(op.C), codegen.Params(groups)), set.String(), args...)
}

// skinnyLaunch launches the skinny kernel; out is the C++ struct Out that writes its results.
func skinnyLaunch(t *launch.Target, op schedule.Gemm, n *Skinny, name, out, declared, set string, args ...uint64) launch.Command {
	aligned := n.length*n.weights.Bytes()%16 == 0 && op.A.M.Cols*n.weights.Bytes()%16 == 0 && int(t.At(op.A))%16 == 0
	sizes := fmt.Sprintf("typedef %v W;\nenum { TILES = %d, EIGHTS = %d, BANDS = %d, SLICES = %d, STAGES = %d, FOLD = %d, ALIGNED = %d, EXACT = %d };\n",
		n.weights, n.tiles, n.eights, n.bands, n.slices, n.stages(), n.fold(), ints.FromBool(aligned), ints.FromBool(n.exact))
	name = "narrow_" + codegen.Identifier(name)
	s := t.Source(func() codegen.Source {
		var text strings.Builder
		text.WriteString(sizes + file("skinny").Text + out)
		fmt.Fprintf(&text, "extern \"C\" __global__ void __launch_bounds__(%d) %s(const W* a, int lda, int rows, const quad* weights, int length, int hidden, int chunks%s) {\n", n.threads(), name, declared)
		fmt.Fprintf(&text, "  Out out;\n  %s\n  narrow_product(out, a, lda, rows, weights, length, hidden, chunks);\n}\n", set)
		return codegen.Source{Name: name, Text: text.String()}
	}, name, sizes, out)
	rows := op.A.Rows
	l := launch.New(s, [3]int{n.blocks(), ints.CeilDiv(rows, n.rows()), 1}, [3]int{n.threads(), 1, 1},
		append([]uint64{uint64(t.At(op.A)), uint64(op.A.M.Cols), uint64(rows), uint64(t.At(op.B)), uint64(n.length), uint64(n.columns / n.gates), uint64(n.chunks())}, args...)...)
	l.Launch.Shared = n.shared()
	l.Early, l.Seconds = t.Properties.Capability >= 90, n.Seconds(rows, t.Properties)
	return l
}
