// Package simd holds the vector kernels of the CPU device: point-wise functions, the
// micro-kernels of the matrix product, and moves between matrix layouts.
//
// generic.go is the reference of every kernel in plain Go. On amd64 assembly, written by the
// program in _generate, stands beside it; several levels can be compared in one binary. The
// package knows neither matrices larger than a register tile nor cells nor workers.
package simd

import "fmt"

//go:generate go -C _generate run . ..

// Level is an instruction set that kernels are written for.
type Level int

// The levels, in the order of preference.
const (
	Generic Level = iota // plain Go
	AVX2                 // with FMA, BMI2 and F16C
	AVX512               // F, DQ, BW, VL
)

var levelNames = [...]string{"generic", "avx2", "avx512"}

func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return levelNames[l]
}

// Parse returns the level of the given name.
func Parse(name string) (Level, error) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), nil
		}
	}
	return Generic, fmt.Errorf("simd: unknown level %q, want one of %v", name, levelNames)
}

// Detect returns the best level of this machine.
func Detect() Level { return detect() }

// For returns the kernels of a level, or an error where the machine lacks it.
func For(l Level) (*Kernels, error) {
	if l < Generic || l > Detect() {
		return nil, fmt.Errorf("simd: level %v is beyond this machine's %v", l, Detect())
	}
	return newKernels(l), nil
}

// Best returns the kernels of the best level of this machine.
func Best() *Kernels { return newKernels(Detect()) }
