package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"

	"rnnbench/device/cpu/simd/amx/program"
)

// Go's assembler and avo do not support tile instructions, so panels are written as text, with
// these instructions as bytes.

// A gpr is the number of a general register in instructions.
type gpr int

const (
	ax gpr = iota
	cx
	dx
	bx
	_ // SP
	_ // BP: as a base it would need a displacement
	si
	di
	r8
	r9
	r10
	r11
	r12
	_ // R13: the same
	r14
	r15
)

// The use of registers.
const (
	strideA = r9
	strideB = r10
	strideC = r11
	stepB   = di // bytes from step to step within a block
	blockA  = r14
	blockC  = r15
)

var (
	baseA = []gpr{ax, cx}         // per tile of rows
	baseB = []gpr{bx, dx, si, r8} // per strip
)

func (r gpr) String() string {
	return []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}[r]
}

// A panelWriter writes the assembly of package amx.
type panelWriter struct{ bytes.Buffer }

func (w *panelWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// raw writes an instruction's bytes.
func (w *panelWriter) raw(text string, code ...byte) {
	w.WriteString("\t")
	for i, b := range code {
		if i > 0 {
			w.WriteString("; ")
		}
		fmt.Fprintf(w, "BYTE $0x%02x", b)
	}
	w.line(" // %s", text)
}

// vex returns the prefix of three bytes of the tile instructions: map 0F38, 128 bits, with the
// registers' upper bits and the operand v inverted.
func vex(pp byte, v int, x, b gpr) []byte {
	inverted := func(r gpr) byte { return byte(r>>3)&1 ^ 1 }
	return []byte{0xc4, 1<<7 | inverted(x)<<6 | inverted(b)<<5 | 2, byte(^v&0xf)<<3 | pp}
}

// Values of pp.
const (
	ppNone = 0
	ppF3   = 2
	ppF2   = 3
)

// move writes TILELOADD or TILESTORED, with rows that are stride bytes apart.
func (w *panelWriter) move(text string, pp byte, tile int, base, stride gpr) {
	code := append(vex(pp, 0, stride, base), 0x4b, byte(tile)<<3|4, byte(stride&7)<<3|byte(base&7))
	w.raw(fmt.Sprintf("%s tmm%d, [%v+%v]", text, tile, base, stride), code...)
}

func (w *panelWriter) dot(sum, a, b int) {
	code := append(vex(ppF3, b, 0, 0), 0x5c, 3<<6|byte(sum)<<3|byte(a))
	w.raw(fmt.Sprintf("TDPBF16PS tmm%d, tmm%d, tmm%d", sum, a, b), code...)
}

func (w *panelWriter) zero(tile int) {
	w.raw(fmt.Sprintf("TILEZERO tmm%d", tile), append(vex(ppF2, 0, 0, 0), 0x49, 3<<6|byte(tile)<<3)...)
}

func (w *panelWriter) configure(base gpr) {
	w.raw(fmt.Sprintf("LDTILECFG [%v]", base), append(vex(ppNone, 0, 0, base), 0x49, byte(base&7))...)
}

func (w *panelWriter) release() { w.raw("TILERELEASE", append(vex(ppNone, 0, 0, 0), 0x49, 0xc0)...) }

// instr writes one instruction of a program. Moves of sums use the registers that hold the bases of
// A during steps.
func (w *panelWriter) instr(in program.Instr) {
	switch in.Op {
	case program.Zero:
		w.zero(in.Register)
	case program.LoadA:
		w.move("TILELOADD", ppF2, in.Register, baseA[in.Tile], strideA)
	case program.LoadB:
		w.move("TILELOADD", ppF2, in.Register, baseB[in.Strip], strideB)
	case program.LoadC:
		w.sums(in)
		w.move("TILELOADD", ppF2, in.Register, ax, strideC)
	case program.Dot:
		w.dot(in.Register, in.A, in.B)
	case program.Store:
		w.sums(in)
		w.move("TILESTORED", ppF3, in.Register, ax, strideC)
	}
}

// sums writes code that sets AX to the address of a tile of C.
func (w *panelWriter) sums(in program.Instr) {
	w.line("\tMOVQ %v, AX", blockC)
	if in.Tile > 0 {
		w.line("\tMOVQ %v, CX", strideC)
		w.line("\tSHLQ $4, CX")
		w.line("\tADDQ CX, AX")
	}
	if in.Strip > 0 {
		w.line("\tADDQ $%d, AX", in.Strip*stripBytes)
	}
}

// panel writes the function of a program.
func (w *panelWriter) panel(p program.Program) {
	w.line("\n// func panel%dx%d(p *Panel)", p.Tiles, p.Strips)
	w.line("TEXT ·panel%dx%d(SB), NOSPLIT, $40-8", p.Tiles, p.Strips)
	w.line("\tMOVQ p+0(FP), DI")
	w.line("\tLEAQ Panel_Config(DI), AX")
	w.configure(ax)
	for _, f := range []struct {
		field string
		to    gpr
	}{{"ARow", strideA}, {"CRow", strideC}, {"BStrip", r12}, {"AStep", ax}} {
		w.line("\tMOVQ Panel_%s(DI), %v", f.field, f.to)
		w.line("\tSHLQ $2, %v", f.to)
	}
	w.line("\tMOVQ AX, a-40(SP)")
	w.line("\tMOVQ $%d, %v", stripBytes, strideB)
	w.line("\tMOVQ Panel_Groups(DI), AX\n\tMOVQ AX, groups-8(SP)")
	w.line("\tMOVQ Panel_B(DI), AX\n\tMOVQ AX, b-16(SP)")
	w.line("\tMOVQ Panel_C(DI), AX\n\tMOVQ AX, c-24(SP)")

	w.line("\ngroup:")
	w.line("\tMOVQ Panel_Blocks(DI), AX\n\tMOVQ AX, blocks-32(SP)")
	w.line("\tMOVQ Panel_A(DI), %v", blockA)
	w.line("\tMOVQ c-24(SP), %v", blockC)

	w.line("\nblock:")
	w.line("\tCMPB Panel_Accumulate(DI), $0")
	w.line("\tJEQ  clear")
	w.all(p.Fetch())
	w.line("\tJMP begun")
	w.line("\nclear:")
	w.all(p.Clear())
	w.line("\nbegun:")
	w.line("\tMOVQ %v, AX", blockA)
	if p.Tiles > 1 {
		w.line("\tMOVQ %v, CX\n\tSHLQ $4, CX\n\tADDQ AX, CX", strideA)
	}
	w.line("\tMOVQ b-16(SP), BX")
	for j := 1; j < p.Strips; j++ {
		w.line("\tLEAQ (%v)(R12*1), %v", baseB[j-1], baseB[j])
	}
	w.line("\tMOVQ Panel_K(DI), R13")
	w.line("\tMOVQ Panel_BStep(DI), %v\n\tSHLQ $2, %[1]v", stepB)
	w.line("\nstep:")
	w.all(p.Step())
	for _, r := range baseA[:p.Tiles] {
		w.line("\tADDQ a-40(SP), %v", r)
	}
	for _, r := range baseB[:p.Strips] {
		w.line("\tADDQ %v, %v", stepB, r)
	}
	w.line("\tDECQ R13\n\tJNZ  step")
	w.line("\tMOVQ p+0(FP), DI")
	w.all(p.Leave())

	w.line("\tMOVQ Panel_BlockRows(DI), AX\n\tMOVQ AX, CX")
	w.line("\tIMULQ %v, AX\n\tADDQ  AX, %v", strideA, blockA)
	w.line("\tIMULQ %v, CX\n\tADDQ  CX, %v", strideC, blockC)
	w.line("\tDECQ blocks-32(SP)\n\tJNZ  block")
	w.line("\tMOVQ R12, AX\n\tIMULQ $%d, AX\n\tADDQ AX, b-16(SP)", p.Strips)
	w.line("\tADDQ $%d, c-24(SP)", p.Strips*stripBytes)
	w.line("\tDECQ groups-8(SP)\n\tJNZ  group")
	w.release()
	w.line("\tRET")
}

func (w *panelWriter) all(code []program.Instr) {
	for _, in := range code {
		w.instr(in)
	}
}

// peak writes a loop of products on registers alone.
func (w *panelWriter) peak() {
	w.line("\n// func peak(n int, config *Config)")
	w.line("TEXT ·peak(SB), NOSPLIT, $0-16")
	w.line("\tMOVQ n+0(FP), CX\n\tMOVQ config+8(FP), AX")
	w.configure(ax)
	w.line("\nround:")
	for i := range program.PeakTiles {
		w.dot(i, 6, 7)
	}
	w.line("\tDECQ CX\n\tJNZ  round")
	w.release()
	w.line("\tRET")
}

const panelConstraint = "amd64 && linux && !noasm"

// writePanels writes the assembly of package amx and its declarations.
func writePanels(folder string) error {
	var w panelWriter
	w.line("// %s\n\n//go:build %s\n", config().GeneratedWarning(), panelConstraint)
	w.line("#include \"go_asm.h\"\n#include \"textflag.h\"")
	var stubs, table bytes.Buffer
	fmt.Fprintf(&stubs, "// %s\n\n//go:build %s\n\npackage amx\n\nimport \"rnnbench/device/cpu/simd/amx/program\"\n", config().GeneratedWarning(), panelConstraint)
	for _, p := range program.All() {
		w.panel(p)
		fmt.Fprintf(&stubs, "\n// panel%dx%d runs panels of %d tiles of rows and groups of %d strips.\n//\n//go:noescape\nfunc panel%[1]dx%[2]d(p *Panel)\n", p.Tiles, p.Strips, p.Tiles, p.Strips)
		fmt.Fprintf(&table, "t[%d][%d] = panel%[1]dx%[2]d\n", p.Tiles, p.Strips)
	}
	w.peak()
	fmt.Fprintf(&stubs, "\n// peak runs n rounds of %d products of tiles.\n//\n//go:noescape\nfunc peak(n int, config *Config)\n", program.PeakTiles)
	fmt.Fprintf(&stubs, "\n// assembly returns the functions by tiles and strips.\nfunc assembly() (t [program.MaxTiles + 1][program.MaxStrips + 1]func(*Panel)) {\n%sreturn t\n}\n", table.String())
	if err := os.WriteFile(filepath.Join(folder, "panels_amd64.s"), w.Bytes(), 0o644); err != nil {
		return err
	}
	src, err := format.Source(stubs.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "stubs_amd64.go"), src, 0o644)
}
