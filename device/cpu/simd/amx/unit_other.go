//go:build !amd64 || !linux || noasm

package amx

// Hardware returns nil: there is no unit.
func Hardware() *Unit { return nil }
