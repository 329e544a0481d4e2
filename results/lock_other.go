//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package results

import "os"

// lock does nothing: there is no lock here that ends with the process.
func lock(*os.File) error { return nil }
