//go:build !unix

package main

import "os"

func stderr() *os.File { return os.Stderr }
