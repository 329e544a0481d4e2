// Command generate writes the assembly of package simd and the declarations that go with it.
//
// go generate runs it with the folder of the package. Offsets of struct fields come from the
// packages' own tile.go and vector.go, so that assembly and Go cannot drift apart.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"rnnbench/device/cpu/simd/fused/catalog"
)

const constraint = "amd64,!noasm"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate folder")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// A part is a set of functions, written to one assembly file per level.
type part struct {
	name string
	emit func(*asm)
}

func generate(folder string) error {
	pkg, err := declarations("simd", filepath.Join(folder, "tile.go"))
	if err != nil {
		return err
	}
	stubs, err := assemble(folder, pkg, []part{
		{"pointwise", pointwise},
		{"optimizer", optimizers},
		{"tile", tiles},
		{"half", tilesOfHalves},
		{"dot", dots},
		{"move", moves},
		{"peak", peak},
		{"pairs", tilesOfPairs},
		{"int8", tilesOfInt8},
	})
	if err != nil {
		return err
	}
	if err := writeStubs(filepath.Join(folder, "stubs_amd64.go"), "simd", stubs, kernelTables); err != nil {
		return err
	}
	if err := writePanels(filepath.Join(folder, "amx")); err != nil {
		return err
	}
	folder = filepath.Join(folder, "fused")
	if pkg, err = declarations("fused", filepath.Join(folder, "vector.go")); err != nil {
		return err
	}
	stubs, err = assemble(folder, pkg, []part{{"programs", programs}, {"loops", loops}, {"recurrences", recurrences}, {"interpreter", interpreters}})
	if err != nil {
		return err
	}
	return writeStubs(filepath.Join(folder, "stubs_amd64.go"), "fused", stubs, programTables)
}

// assemble writes the files of all parts and levels and returns their functions.
func assemble(folder string, pkg *types.Package, parts []part) ([]*ir.Function, error) {
	var stubs []*ir.Function
	for _, l := range levels {
		for _, part := range parts {
			a := newAsm(pkg, l)
			part.emit(a)
			if empty(a) {
				continue
			}
			f, err := a.Result()
			if err != nil {
				build.LogError(log.New(os.Stderr, "", 0), err, 10)
				return nil, fmt.Errorf("%s %s: %w", part.name, l.name, err)
			}
			if err := pass.Compile.Execute(f); err != nil {
				return nil, fmt.Errorf("%s %s: %w", part.name, l.name, err)
			}
			for _, fn := range f.Functions() {
				fn.Nodes = slices.DeleteFunc(fn.Nodes, func(n ir.Node) bool {
					i, ok := n.(*ir.Instruction)
					return ok && idle(i)
				})
			}
			if err := a.checkRegisters(f); err != nil {
				return nil, err
			}
			text, err := printer.NewGoAsm(config()).Print(f)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(folder, part.name+"_"+l.file+"_amd64.s"), text, 0o644); err != nil {
				return nil, err
			}
			stubs = append(stubs, f.Functions()...)
		}
	}
	return stubs, nil
}

func config() printer.Config { return printer.Config{Name: "device/cpu/simd/_generate"} }

// declarations type-checks one file of the package on its own.
func declarations(name, file string) (*types.Package, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	c := types.Config{Importer: importer.Default()}
	return c.Check(name, set, []*ast.File{f}, nil)
}

// writeStubs writes the declarations of all assembly functions, and the tables.
func writeStubs(file, pkg string, fns []*ir.Function, tables func(*bytes.Buffer)) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n//go:build amd64 && !noasm\n\npackage %s\n", config().GeneratedWarning(), pkg)
	if pkg == "fused" {
		fmt.Fprintf(&b, "\nimport \"rnnbench/device/cpu/simd\"\n")
	}
	for _, fn := range fns {
		b.WriteString("\n")
		for _, d := range fn.Doc {
			fmt.Fprintln(&b, strings.TrimRight("// "+d, " "))
		}
		fmt.Fprintf(&b, "//\n//go:noescape\n%s\n", fn.Stub())
	}
	tables(&b)
	src, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(file, src, 0o644)
}

// kernelTables writes the tables of tile and dot kernels.
func kernelTables(b *bytes.Buffer) {
	for _, l := range levels {
		fmt.Fprintf(b, "\n// tiles%s returns the kernels by format.\nfunc tiles%s() (t [formats]tileTable) {\n", l.name, l.name)
		for i, format := range formats {
			for m, most := range l.tiles {
				for s := 1; s <= most; s++ {
					fmt.Fprintf(b, "t[%d][%d][%d] = %s\n", i, m, s, tileName(l, m, s, format))
				}
			}
		}
		if l.pairs() {
			for m, most := range l.tiles {
				for s := 1; s <= most; s++ {
					fmt.Fprintf(b, "t[%d][%d][%d] = %s\n", len(formats), m, s, tileName(l, m, s, pairs))
				}
			}
		}
		for s := 1; s <= int8Strips; s++ {
			fmt.Fprintf(b, "t[%d][1][%d] = %s\n", len(formats)+1, s, tileName(l, 1, s, int8s))
		}
		fmt.Fprintf(b, "return t\n}\n")
		fmt.Fprintf(b, "\n// dots%s returns the kernels by rows and columns.\nfunc dots%s() (t [MaxRows + 1][DotCols + 1]func(*Dot)) {\n", l.name, l.name)
		for m := 1; m <= l.dotRows; m++ {
			for _, n := range dotCols {
				fmt.Fprintf(b, "t[%d][%d] = %s\n", m, n, dotName(l, m, n))
			}
		}
		fmt.Fprintf(b, "return t\n}\n")
	}
}

// programTables writes the tables that map a cell and a pass to assembly, with the hash of the
// program that it was written for, and the table of interpreters.
func programTables(b *bytes.Buffer) {
	for _, t := range []struct {
		name, function string
		routines       []routine
	}{
		{"kernelTable", "kernelFunc", kernelRoutines()},
		{"loopTable", "loopFunc", loopRoutines()},
		{"recurrenceTable", "recurrenceFunc", recurrenceRoutines()},
	} {
		fmt.Fprintf(b, "\nvar %s = table[%s]{\n", t.name, t.function)
		for _, l := range levels {
			fmt.Fprintf(b, "simd.%s: {\n", l.name)
			for _, r := range t.routines {
				for _, k := range r.keys {
					fmt.Fprintf(b, "{Cell: %q, Pass: %v}: {%#016x, %s%s},\n", k.Cell, k.Pass, catalog.Hash(r.program), r.name, l.name)
				}
			}
			fmt.Fprintf(b, "},\n")
		}
		fmt.Fprintf(b, "}\n")
	}
	fmt.Fprintf(b, "\nvar interpreters = map[simd.Level]assembly{\n")
	for _, l := range levels {
		fmt.Fprintf(b, "simd.%s: {interpret%s, handlers%s},\n", l.name, l.name, l.name)
	}
	fmt.Fprintf(b, "}\n")
}
