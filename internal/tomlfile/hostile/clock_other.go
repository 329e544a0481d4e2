//go:build !unix

package hostile

import "time"

var began = time.Now()

func clock() time.Duration { return time.Since(began) }
