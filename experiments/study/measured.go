package study

import (
	"rnnbench/experiments/estimate"
	"rnnbench/plots/quantity"
)

// ClaimAbove adds a paper's claim that v exceeds least.
func ClaimAbove(r *Report, on Target, paper, here string, v quantity.Interval, least float64, why string) {
	ClaimOf(r, on, paper, here, estimate.Of(v), estimate.Above(least), why)
}

// ClaimNear adds a paper's claim that v is a number, which it is close to.
func ClaimNear(r *Report, on Target, paper, here string, v quantity.Interval, number float64, why string) {
	ClaimOf(r, on, paper, here, estimate.Of(v), estimate.Near(number), why)
}

// CompareAbove is claimAbove with a finding that ends with whether it agrees, with the same cause.
func CompareAbove(r *Report, on Target, finding, paper, here string, v quantity.Interval, least float64, why string) {
	CompareOf(r, on, finding, paper, here, estimate.Of(v), estimate.Above(least), why)
}
