// Rnnbench measures ways to run recurrent neural networks.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, stderr()))
}
