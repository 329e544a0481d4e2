//go:build !amd64 || !linux || noasm

package amx

// Hardware returns the processor's own unit: there is none here.
func Hardware() *Unit { return nil }
