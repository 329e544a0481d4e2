// Rnnbench measures ways to run recurrent neural networks.
package main

import "os"

func main() {
	os.Exit(process(os.Args[1:]))
}
