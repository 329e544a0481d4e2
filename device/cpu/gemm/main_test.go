package gemm

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage rarely: each of many thousand products is small, and soon done.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
