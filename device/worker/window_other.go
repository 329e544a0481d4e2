//go:build !linux

package worker

import "errors"

var errNoWindow = errors.New("worker: no shared memory on this system")

func newWindow() (*window, error)       { return nil, errNoWindow }
func openWindow() (*window, error)      { return nil, errNoWindow }
func (w *window) remap(int, bool) error { return errNoWindow }
func (w *window) close()                {}
