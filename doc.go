// Package rnnbench is the root of a program that measures ways to run recurrent
// neural networks; the program is cmd/rnnbench. This package holds nothing but
// the test that keeps the others' imports pointing down.
package rnnbench
