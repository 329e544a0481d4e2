package schedule

import "fmt"

// Foreign is a whole pass that another program computes. No device runs it. The package that knows
// the program does, and finds here where each array comes from and goes to.
type Foreign struct {
	Program  string // its name
	Request  string // what it is to compute, as the program is told
	In, Out  []Array
	Products int64 // floating-point operations of the problem: what it executes is not known
}

// An Array is a whole matrix, with the name and shape that the program knows.
type Array struct {
	Name  string
	Shape []int // with as many elements
	All   View
}

func (f Foreign) Name() string   { return "foreign" }
func (f Foreign) Reads() []View  { return viewsOf(f.In) }
func (f Foreign) Writes() []View { return viewsOf(f.Out) }
func (f Foreign) FLOPs() int64   { return f.Products }
func (f Foreign) String() string {
	return fmt.Sprintf("foreign %s %s %v ← %v", f.Program, f.Request, f.Writes(), f.Reads())
}

func viewsOf(arrays []Array) []View {
	views := make([]View, len(arrays))
	for i, a := range arrays {
		views[i] = a.All
	}
	return views
}

func (f Foreign) complete() bool {
	return f.Program != "" && len(f.In) > 0 && len(f.Out) > 0 && present(f.Reads()...) && present(f.Writes()...)
}

func (f Foreign) check() error {
	for _, list := range [][]Array{f.In, f.Out} {
		for _, a := range list {
			n := 1
			for _, size := range a.Shape {
				n *= size
			}
			if a.All != a.All.M.All() || n != a.All.M.Elements() {
				return shapeError(f)
			}
		}
	}
	return nil
}
