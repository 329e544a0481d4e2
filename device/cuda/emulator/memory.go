package emulator

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"rnnbench/device/cuda/driver"
)

// A block is allocated memory.
type block struct {
	at    driver.Pointer
	bytes int64
	data  []byte
}

// FreeMemory implements driver.Driver.
func (d *Driver) FreeMemory() (int64, error) { return 1 << 33, nil }

// Alloc implements driver.Driver. New memory is full of NaNs.
func (d *Driver) Alloc(bytes int64) (driver.Pointer, error) {
	if err := d.alone("allocating memory"); err != nil {
		return 0, err
	}
	data := make([]byte, bytes+256)
	for i := range data {
		data[i] = 0xff
	}
	at := (driver.Pointer(uintptr(unsafe.Pointer(&data[0]))) + 255) &^ 255
	d.memory = append(d.memory, block{at: at, bytes: bytes, data: data})
	return at, nil
}

// Free implements driver.Driver.
func (d *Driver) Free(p driver.Pointer) error {
	i := slices.IndexFunc(d.memory, func(b block) bool { return b.at == p })
	if i < 0 {
		return fmt.Errorf("emulator: nothing is allocated at %#x", p)
	}
	err := d.drain()
	d.memory = slices.Delete(d.memory, i, i+1)
	return err
}

// view returns the bytes of memory at p, or an error if they are not allocated.
func (d *Driver) view(p driver.Pointer, bytes int64) ([]byte, error) {
	for _, b := range d.memory {
		if p >= b.at && p < b.at+driver.Pointer(b.bytes) && bytes <= b.bytes-int64(p-b.at) {
			from := int64(p) - int64(uintptr(unsafe.Pointer(&b.data[0])))
			return b.data[from : from+bytes], nil
		}
	}
	return nil, fmt.Errorf("emulator: %d bytes at %#x are not allocated", bytes, p)
}

// Clear implements driver.Driver.
func (d *Driver) Clear(parts ...driver.Extent) error {
	if err := d.drain(); err != nil {
		return err
	}
	for _, p := range parts {
		v, err := d.view(p.At, p.Bytes)
		if err != nil {
			return err
		}
		clear(v)
	}
	return nil
}

// Upload implements driver.Driver.
func (d *Driver) Upload(to driver.Pointer, from []byte) error {
	v, err := d.view(to, int64(len(from)))
	err = errors.Join(err, d.drain())
	copy(v, from)
	return err
}

// Download implements driver.Driver.
func (d *Driver) Download(to []byte, from driver.Pointer) error {
	v, err := d.view(from, int64(len(to)))
	err = errors.Join(err, d.drain())
	copy(to, v)
	return err
}

// HostMemory implements driver.Driver. Kernels reach it as well.
func (d *Driver) HostMemory(bytes int) ([]byte, error) {
	at, err := d.Alloc(int64(bytes))
	if err != nil {
		return nil, err
	}
	return d.view(at, int64(bytes))
}

// FreeHostMemory implements driver.Driver.
func (d *Driver) FreeHostMemory(m []byte) error {
	return d.Free(driver.Pointer(uintptr(unsafe.Pointer(&m[0]))))
}

// CopyIn implements driver.Driver. Like all copies, it reads the memory only when its turn comes.
func (d *Driver) CopyIn(to driver.Pointer, from []byte, stream int) error {
	v, err := d.view(to, int64(len(from)))
	return errors.Join(err, d.push(command{stream: stream, wait: -1, record: -1, do: func() error { copy(v, from); return nil }}))
}

// CopyOut implements driver.Driver.
func (d *Driver) CopyOut(to []byte, from driver.Pointer) error {
	v, err := d.view(from, int64(len(to)))
	return errors.Join(err, d.push(command{wait: -1, record: -1, do: func() error { copy(to, v); return nil }}))
}

// Copy implements driver.Driver.
func (d *Driver) Copy(to, from driver.Pointer, bytes int64) error {
	source, err := d.view(from, bytes)
	if err != nil {
		return err
	}
	return d.CopyIn(to, source, 0)
}

// pointer converts an address of memory that Go does not manage.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
