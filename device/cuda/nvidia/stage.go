//go:build cuda

package nvidia

import (
	"unsafe"

	"gorgonia.org/cu"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
)

// A stage copies large matrices between the host and the GPU by two pinned buffers, to which the GPU
// has direct access. The host's processors fill or empty one while the GPU copies the other.
// Without it, the driver would first copy to a pinned buffer of its own, on one processor.
type stage struct {
	buffer [2][]byte
	passed [2]driver.Event // recorded after a buffer's last copy
}

const (
	staged    = 1 << 20 // bytes from which a stage pays
	stageSize = 8 << 20 // bytes of a buffer
)

// ready allocates the buffers, once.
func (s *stage) ready(d *gpu) error {
	for i := range s.buffer {
		if s.buffer[i] != nil {
			continue
		}
		var at *byte
		if err := d.do("cuMemHostAlloc", address(&at), stageSize, 0); err != nil {
			return err
		}
		var err error
		if s.passed[i], err = d.NewEvent(false); err != nil {
			return err
		}
		s.buffer[i] = unsafe.Slice(at, stageSize)
	}
	return nil
}

// piece returns the ith piece of v, which has at most stageSize bytes; empty: beyond the end.
func piece(v []byte, i int) []byte {
	return v[min(i*stageSize, len(v)):min((i+1)*stageSize, len(v))]
}

func (s *stage) upload(d *gpu, to driver.Pointer, from []byte) error {
	if err := s.ready(d); err != nil {
		return err
	}
	for i := 0; len(piece(from, i)) > 0; i++ {
		b, passed := s.buffer[i%2], s.passed[i%2]
		if err := d.Await(passed); err != nil {
			return err
		}
		n := device.Copy(b, piece(from, i))
		if err := d.do("cuMemcpyHtoDAsync_v2", uintptr(to)+uintptr(i*stageSize), address(&b[0]), uintptr(n), 0); err != nil {
			return err
		}
		if err := d.do("cuEventRecord", handle(&d.events[passed]), 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) download(d *gpu, to []byte, from driver.Pointer) error {
	if err := s.ready(d); err != nil {
		return err
	}
	fetch := func(i int) error {
		n := len(piece(to, i))
		if n == 0 {
			return nil
		}
		if err := d.do("cuMemcpyDtoHAsync_v2", address(&s.buffer[i%2][0]), uintptr(from)+uintptr(i*stageSize), uintptr(n), 0); err != nil {
			return err
		}
		return d.do("cuEventRecord", handle(&d.events[s.passed[i%2]]), 0)
	}
	err := fetch(0)
	for i := 0; err == nil && len(piece(to, i)) > 0; i++ {
		if err = fetch(i + 1); err != nil {
			break
		}
		if err = d.Await(s.passed[i%2]); err == nil {
			device.Copy(piece(to, i), s.buffer[i%2])
		}
	}
	return err
}

// HostMemory implements driver.Driver.
func (d *gpu) HostMemory(bytes int) ([]byte, error) {
	var at *byte
	if err := d.do("cuMemHostAlloc", address(&at), uintptr(bytes), 0); err != nil {
		return nil, err
	}
	return unsafe.Slice(at, bytes), nil
}

// FreeHostMemory implements driver.Driver.
func (d *gpu) FreeHostMemory(m []byte) error {
	return d.do("cuMemFreeHost", address(&m[0]))
}

// CopyIn implements driver.Driver.
func (d *gpu) CopyIn(to driver.Pointer, from []byte, stream int) error {
	on, err := d.stream(stream)
	if err != nil {
		return err
	}
	return d.do("cuMemcpyHtoDAsync_v2", uintptr(to), address(&from[0]), uintptr(len(from)), handle(on))
}

// Copy implements driver.Driver.
func (d *gpu) Copy(to, from driver.Pointer, bytes int64) error {
	return d.do("cuMemcpyDtoDAsync_v2", uintptr(to), uintptr(from), uintptr(bytes), handle(&d.streams[0]))
}

// CopyOut implements driver.Driver.
func (d *gpu) CopyOut(to []byte, from driver.Pointer) error {
	return d.do("cuMemcpyDtoHAsync_v2", address(&to[0]), uintptr(from), uintptr(len(to)), handle(&d.streams[0]))
}

// stream returns the nth stream. For driver.Copies it returns the stream of copies, which it creates.
func (d *gpu) stream(n int) (*cu.Stream, error) {
	if n != driver.Copies {
		return &d.streams[n], nil
	}
	if d.copies == nil {
		s, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return nil, failure(err)
		}
		d.copies = &s
	}
	return d.copies, nil
}

// WaitFor implements driver.Driver.
func (d *gpu) WaitFor(e driver.Event, stream int) error {
	on, err := d.stream(stream)
	if err != nil {
		return err
	}
	return d.do("cuStreamWaitEvent", handle(on), handle(&d.events[e]), 0)
}
