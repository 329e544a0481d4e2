// Package ints has the integer arithmetic that sizes grids and buffers.
package ints

// CeilDiv is a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// RoundUp returns the least multiple of to that is at least n.
func RoundUp(n, to int) int { return CeilDiv(n, to) * to }

// PowerOfTwo returns the least power of two that is at least n.
func PowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// FromBool returns 1 for true and 0 for false.
func FromBool(b bool) int {
	if b {
		return 1
	}
	return 0
}
