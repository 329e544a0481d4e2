package cpu_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage rarely: each of many thousand programs is small, and soon closed.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
