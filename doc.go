// Package rnnbench is the root of a program that measures ways to run recurrent
// neural networks. The program is cmd/rnnbench. This package holds only the test
// that checks the direction of imports between the other packages.
package rnnbench
