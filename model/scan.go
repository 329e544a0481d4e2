package model

import "math"

// SerialScan is the number of operations of a linear recurrence over steps of n
// elements, one after the other: Martin & Cundy (2017), section 2.1.
func SerialScan(n, steps int) float64 { return 2 * float64(n) * float64(steps) }

// ParallelScan is the number of operations on the longest path of the same recurrence when p
// processors divide the steps. Each reduces its part, the results are scanned, and each scans its
// part.
func ParallelScan(n, steps, p int) float64 {
	return 6 * float64(n) * (float64(steps)/float64(p) + math.Log2(float64(p)))
}

// ScanCrossover is the smallest number of processors at which the parallel scan is no slower than
// the serial one; 0: none. With few steps, lg p costs more than dividing them saves.
func ScanCrossover(steps int) int {
	for p := 1; p <= steps; p++ {
		if ParallelScan(1, steps, p) <= SerialScan(1, steps) {
			return p
		}
	}
	return 0
}
