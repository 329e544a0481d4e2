//go:build cuda

package nvidia

import "rnnbench/device/cuda/driver"

// launchConfig is CUlaunchConfig, launchAttribute CUlaunchAttribute.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      uintptr
	attributes  *[4]launchAttribute
	count       uint32
}

type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// tensors encodes the tensor maps of a launch, which bulk copies read.
func (d *gpu) tensors(l *driver.Launch) error {
	const wide = 2 // L2 promotion: reads fetch 128 bytes
	const turned = 3
	for _, t := range l.Tensors {
		rank := len(t.Sizes)
		var sizes, strides [3]uint64
		var box [3]uint32
		each := [3]uint32{1, 1, 1}
		for i := range rank {
			sizes[i], box[i] = uint64(t.Sizes[i]), uint32(t.Box[i])
		}
		strides[0], strides[1] = uint64(t.Strides[0]), uint64(t.Strides[1])
		swizzle := uintptr(0)
		if t.Turned {
			swizzle = turned
		}
		kind := map[driver.Element]uintptr{driver.Half: 6, driver.Single: 7, driver.Brain: 9}[t.Element]
		if err := d.do("cuTensorMapEncodeTiled", uintptr(t.Image()), kind, uintptr(rank), uintptr(t.At), address(&sizes), address(&strides), address(&box), address(&each), 0, swizzle, wide, 0); err != nil {
			return err
		}
	}
	return nil
}

// config returns the configuration of a launch with attributes. It is on the heap, so that it does
// not move while the library reads it.
func (d *gpu) config(l *driver.Launch, stream uintptr) *launchConfig {
	c := &launchConfig{shared: uint32(l.Shared), stream: stream, attributes: new([4]launchAttribute)}
	for i := range 3 {
		c.grid[i], c.block[i] = uint32(l.Grid[i]), uint32(l.Block[i])
	}
	add := func(id uint32, value ...uint32) {
		c.attributes[c.count].id = id
		copy(c.attributes[c.count].value[:], value)
		c.count++
	}
	if l.Cluster > 0 {
		add(clusterSize, uint32(l.Cluster), 1, 1)
	}
	if l.Cooperative {
		add(cooperative, 1)
	}
	if l.Early {
		add(early, 1)
	}
	if l.Urgent && d.urgent != 0 {
		add(priority, uint32(d.urgent))
	}
	return c
}

// allow lets a kernel use shared bytes of dynamic shared memory; false: a block cannot have as many.
func (d *gpu) allow(k driver.Kernel, shared int) (bool, error) {
	if shared <= d.allowed[k.ID] {
		return true, nil
	}
	if shared+k.Static > d.properties.Shared {
		return false, nil
	}
	if err := d.do("cuFuncSetAttribute", handle(&d.functions[k.ID]), maxDynamic, uintptr(shared)); err != nil {
		return true, err
	}
	d.allowed[k.ID] = shared
	return true, nil
}

func (d *gpu) Resident(k driver.Kernel, threads, shared int) (int, error) {
	if ok, err := d.allow(k, shared); !ok || err != nil {
		return 0, err
	}
	n, err := d.functions[k.ID].MaxActiveBlocksPerMultiProcessor(threads, int64(shared))
	return n, failure(err)
}

func (d *gpu) Clusters(k driver.Kernel, size, threads, shared int) (int, error) {
	if ok, err := d.allow(k, shared); !ok || err != nil {
		return 0, err
	}
	f := handle(&d.functions[k.ID])
	if size > 8 {
		if err := d.do("cuFuncSetAttribute", f, nonPortable, 1); err != nil {
			return 0, err
		}
	}
	var n int32
	err := d.do("cuOccupancyMaxActiveClusters", address(&n), f, address(d.config(&driver.Launch{Grid: [3]int{size, 1, 1}, Block: [3]int{threads, 1, 1}, Shared: shared, Cluster: size}, 0)))
	return int(n), err
}
