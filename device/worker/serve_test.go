package worker

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"strings"
	"testing"

	"rnnbench/device"
)

// TestServeEnds: an idle worker ends when its parent is gone. It is abandoned only during a call.
func TestServeEnds(t *testing.T) {
	for range 1000 {
		if err := Serve(strings.NewReader(""), io.Discard, nil, func() { t.Error("abandoned with nothing to do") }); err != nil {
			t.Fatal(err)
		}
	}
	var in bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(request{Call: callOpen}); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	open := func(string) (device.Device, error) {
		<-gone
		return nil, errors.New("late")
	}
	if err := Serve(&in, io.Discard, open, func() { close(gone) }); err != nil {
		t.Error(err)
	}
}
