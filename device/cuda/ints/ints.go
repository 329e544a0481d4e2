// Package ints has the arithmetic that grids and buffers are sized with.
package ints

// CeilDiv is a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// RoundUp is the least multiple of to that is not below n.
func RoundUp(n, to int) int { return CeilDiv(n, to) * to }

// PowerOfTwo is the least that is not below n.
func PowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// FromBool is 1 for true, else 0.
func FromBool(b bool) int {
	if b {
		return 1
	}
	return 0
}
