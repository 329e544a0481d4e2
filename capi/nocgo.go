//go:build !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "the C library needs a C compiler: build it with make lib")
	os.Exit(1)
}
