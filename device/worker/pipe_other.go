//go:build !unix

package worker

import "io"

// pollable returns r: other systems' pipes need no change.
func pollable(r io.Reader) io.Reader { return r }
