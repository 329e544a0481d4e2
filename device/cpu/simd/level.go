// Package simd holds the vector kernels of the CPU device: point-wise functions, the micro-kernels
// of the matrix product, and moves between matrix layouts.
//
// generic.go has the plain Go reference of every kernel. On amd64 the program in _generate writes
// the assembly, and one binary can compare several levels. The package has no notion of matrices
// larger than a register tile, of cells, or of workers.
package simd

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

//go:generate go -C _generate run . ..

// A Level is an instruction set that kernels are written for.
type Level int

// The levels, in rising order of preference. Levels above AVX512 differ from it only in products of
// BF16.
const (
	Generic    Level = iota // plain Go
	AVX2                    // with FMA, BMI2 and F16C
	AVX512                  // F, DQ, BW, VL
	AVX512BF16              // and products of pairs of BF16
	AMX                     // and products of tiles of BF16
)

var levelNames = [...]string{"generic", "avx2", "avx512", "avx512bf16", "amx"}

// Names returns the names of all levels, from the lowest on.
func Names() []string { return levelNames[:] }

// Base returns the level whose kernels l uses for everything except products of BF16.
func (l Level) Base() Level { return min(l, AVX512) }

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

// Variable is the environment variable that caps the instruction set of the whole
// process: its value is the name of a level.
const Variable = "RNNBENCH_SIMD"

// Detect returns the best level of this machine, or the one that Variable names.
func Detect() Level {
	most, _ := most()
	if os.Getenv(Variable) == "" {
		return usual(most, slow())
	}
	return most
}

// usual returns the best level for a machine. Intel's processors multiply pairs of BF16 at half the
// rate of single precision, so widening is faster there. Processors with tiles need no pairs.
func usual(machine Level, slowPairs bool) Level {
	if machine == AVX512BF16 && slowPairs {
		return AVX512
	}
	return machine
}

// Check returns an error if Variable names no level of this machine.
func Check() error {
	_, err := most()
	return err
}

// most returns the highest level that may be used. If the value of Variable is invalid, it returns
// the machine's level and an error.
var most = sync.OnceValues(func() (Level, error) { return under(os.Getenv(Variable), detect()) })

// under returns the machine's level, capped by the level of that name; "": not capped.
func under(name string, machine Level) (Level, error) {
	if name == "" {
		return machine, nil
	}
	l, err := Parse(name)
	switch {
	case err != nil:
		return machine, fmt.Errorf("%s=%s: choose among %s", Variable, name, strings.Join(levelNames[:], ", "))
	case l > machine:
		return machine, fmt.Errorf("%s=%s: this machine supports %v at most", Variable, name, machine)
	}
	return l, nil
}

// For returns the kernels of a level, or an error if the machine lacks it or Variable forbids it.
func For(l Level) (*Kernels, error) {
	most, _ := most()
	switch {
	case l < Generic || l > detect():
		return nil, fmt.Errorf("simd: this machine supports %v at most, not %v", detect(), l)
	case l > most:
		return nil, fmt.Errorf("simd: %s=%v forbids %v", Variable, most, l)
	}
	return newKernels(l), nil
}

// Best returns the kernels of the level that Detect returns.
func Best() *Kernels { return newKernels(Detect()) }
