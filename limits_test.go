package rnnbench_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What fits a screen and a head. Tests and generated files may be longer.
const (
	mostLinesOfFunction = 80
	mostMethods         = 25
)

// longFunctions may be longer, at most three of them.
var longFunctions = []string{}

// wideTypes have a method for each of somebody else's functions.
var wideTypes = []string{
	"device/cuda/driver.Driver",   // what the package needs of CUDA
	"device/cuda/emulator.Driver", // implements it
	"device/cuda/nvidia.gpu",      // implements it
}

// knownLong are places that are still to be cut. Remove each as it goes.
var knownLong = []string{}

// TestLimits holds functions and types to their limits. A file may be as long as one purpose needs.
func TestLimits(t *testing.T) {
	if len(longFunctions) > 3 {
		t.Errorf("%d functions may be longer: 3 at most", len(longFunctions))
	}
	c := census{fset: token.NewFileSet(), over: map[string]string{}, methods: map[string]map[string]bool{}}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return c.file(filepath.ToSlash(path))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.methods) < 100 {
		t.Fatalf("there are only %d types with methods: the test looks in the wrong place", len(c.methods))
	}
	for name, methods := range c.methods {
		if n := len(methods); n > mostMethods {
			c.over[name] = fmt.Sprintf("has %d methods, more than %d", n, mostMethods)
		}
	}
	allowed := slices.Concat(longFunctions, wideTypes, knownLong)
	for place, why := range c.over {
		if !slices.Contains(allowed, place) {
			t.Errorf("%s %s: cut it by purpose", place, why)
		}
	}
	for _, place := range allowed {
		if c.over[place] == "" {
			t.Errorf("%s keeps the limits: remove it from the list of exceptions", place)
		}
	}
}

// A census finds what is over its limit.
type census struct {
	fset    *token.FileSet
	over    map[string]string          // why, by place
	methods map[string]map[string]bool // names, by type
}

// file counts a file and what it declares.
func (c *census) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(c.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	dir := path[:max(0, strings.LastIndex(path, "/"))]
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.function(dir, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					c.interfaces(dir, s)
				}
			}
		}
	}
	return nil
}

// function counts a function's lines, and a method for its type.
func (c *census) function(dir string, d *ast.FuncDecl) {
	place := dir + "." + d.Name.Name
	if d.Recv != nil {
		of := receiver(d.Recv.List[0].Type)
		c.method(dir+"."+of, d.Name.Name)
		place = fmt.Sprintf("%s.(%s).%s", dir, of, d.Name.Name)
	}
	if n := c.line(d.End()) - c.line(d.Pos()) + 1; n > mostLinesOfFunction {
		c.over[place] = fmt.Sprintf("has %d lines, more than %d", n, mostLinesOfFunction)
	}
}

// interfaces counts the methods that an interface lists.
func (c *census) interfaces(dir string, s *ast.TypeSpec) {
	i, ok := s.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, m := range i.Methods.List {
		for _, name := range m.Names {
			c.method(dir+"."+s.Name.Name, name.Name)
		}
	}
}

// method notes a method of a type, once for all systems.
func (c *census) method(of, name string) {
	if c.methods[of] == nil {
		c.methods[of] = map[string]bool{}
	}
	c.methods[of][name] = true
}

func (c *census) line(p token.Pos) int { return c.fset.Position(p).Line }

// receiver names the type of a receiver, without pointer and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}
