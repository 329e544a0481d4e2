//go:build !unix

package worker

import "io"

// pollable is r: pipes of other systems are as they are.
func pollable(r io.Reader) io.Reader { return r }
