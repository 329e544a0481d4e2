package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/internal/memory"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

var _ device.Prober = (*Device)(nil)

// probeK is the length of the products that probe a memory. With that of a layer of medium size, a
// strip of weights takes 32 KiB.
const probeK = 512

// Hierarchy implements device.Prober. Like the limits, its rates are the best of
// several short trials.
func (d *Device) Hierarchy() (device.Hierarchy, error) {
	var h device.Hierarchy
	cache := cpuid.CPU.Cache
	own := max(int64(cache.L2), 256<<10)
	last := max(int64(cache.L3), 4*own)
	free := memory.Available()
	if free == 0 {
		free = 8 << 30
	}
	n := int64(d.workers)
	var reads []int // bytes that each worker reads, of each memory
	for _, m := range []struct {
		device.Memory
		read int64
	}{
		{device.Memory{Name: "L1", Bytes: int64(nearest())}, int64(nearest()) / 2},
		{device.Memory{Name: "L2", Bytes: own}, own / 2},
		{device.Memory{Name: "L3", Bytes: last, Shared: true}, max(last/4/n, 2*own)},
		{device.Memory{Name: "DRAM", Bytes: free, Shared: true}, min(2*last, free/4/n)},
	} {
		reads = append(reads, int(m.read))
		h.Memories = append(h.Memories, m.Memory)
	}
	var err error
	if h.Unsure, err = readRates(h.Memories, func(i int) (float64, error) { return d.readRate(reads[i]) }); err != nil {
		return h, err
	}
	if h.Product, h.Pointwise, err = d.arithmetic(); err != nil {
		return h, err
	}
	half, unsure, err := d.half()
	if err != nil {
		return h, err
	}
	h.Half, h.Unsure = half, append(h.Unsure, unsure...)
	if h.Barrier, h.Exchange, err = d.exchange(); err != nil {
		return h, err
	}
	if h.Meetings, err = d.smallerBarriers(); err != nil {
		return h, err
	}
	if d.workers > 1 {
		h.Meetings = append(h.Meetings, device.Meeting{Workers: d.workers, Seconds: h.Barrier})
	}
	h.Replicas, err = d.link()
	return h, err
}

// smallerBarriers measures the barriers of 2, 4, 8 … workers, fewer than all.
func (d *Device) smallerBarriers() (all []device.Meeting, err error) {
	for n := 2; n < d.workers; n *= 2 {
		barrier, _, err := d.limited(knob.Params{"workers": n}).exchange()
		if err != nil {
			return nil, err
		}
		all = append(all, device.Meeting{Workers: n, Seconds: barrier})
	}
	return all, nil
}

// readRates measures the rate of each memory, with read. A memory that is clearly slower than one farther
// out was disturbed, so it is measured again, some times. readRates returns the names of those that
// remain slower.
func readRates(all []device.Memory, read func(i int) (float64, error)) (unsure []string, err error) {
	const trials, tolerance = 4, 0.9
	for i := len(all) - 1; i >= 0; i-- {
		least := 0.0
		for _, m := range all[i+1:] {
			least = max(least, tolerance*m.PerCore)
		}
		for trial := 0; trial == 0 || trial < trials && all[i].PerCore < least; trial++ {
			rate, err := read(i)
			if err != nil {
				return nil, err
			}
			all[i].PerCore = max(all[i].PerCore, rate)
		}
		if all[i].PerCore < least {
			unsure = append(unsure, all[i].Name)
		}
	}
	slices.Reverse(unsure)
	return unsure, nil
}

// half returns the speedup of bf16 multiply-adds over single precision, and the names of peaks that
// are not sure; 0: there are none.
func (d *Device) half() (speedup float64, unsure []string, err error) {
	l, err := d.peaks()
	if err != nil || len(l.More) == 0 {
		return 0, l.Unsure, err
	}
	return max(1, l.More[0].Value/l.FLOPS), l.Unsure, nil
}

// fill writes to memory, so that the system allocates it. The values are normal, since subnormal
// numbers would slow products down.
func fill(a []float32) {
	for i := range a {
		a[i] = 1.0 / 1024
	}
}

// readRate returns the bytes per second at which each worker reads an array of its own, of so many
// bytes, in products of one row.
func (d *Device) readRate(bytes int) (float64, error) {
	// Each call reads the most strips possible: with fewer, additions would wait for each other. In
	// the smallest memory calls are shorter instead.
	most := d.kernels.MaxStrips(1)
	k := max(1, min(probeK, bytes/(4*simd.StripWidth*most)))
	strips := max(1, bytes/(4*simd.StripWidth*k*most)) * most
	size := strips * k * simd.StripWidth
	arena, free, err := allocate(size * d.workers)
	if err != nil {
		return 0, fmt.Errorf("cpu: cannot allocate %d MiB to measure a memory: %w", size*d.workers>>18, err)
	}
	// Each trial reads many megabytes, so that its beginning and end do not count, and the whole
	// array at least once.
	const trials, atLeast = 10, 32 << 20
	rounds := max(1, atLeast/(4*size))
	a, n := make([]float32, k), strips*simd.StripWidth
	c := make([]float32, n*d.workers)
	read := func(w, rounds int) {
		for range rounds {
			d.tiles(arena[w*size:(w+1)*size], a, c[w*n:(w+1)*n], 1, k, strips)
		}
	}
	if _, err := d.together(func(w int) { fill(arena[w*size : (w+1)*size]); read(w, 1) }); err != nil {
		return 0, err
	}
	var best float64
	for range trials {
		sec, err := d.together(func(w int) { read(w, rounds) })
		if err != nil {
			return 0, err
		}
		best = max(best, 4*float64(size)*float64(rounds)/sec)
	}
	return best, free()
}

// tiles multiplies the rows × k matrix a by a packed matrix of so many strips.
func (d *Device) tiles(b, a, c []float32, rows, k, strips int) {
	most := d.kernels.MaxStrips(rows)
	for s := 0; s < strips; s += most {
		here := min(most, strips-s)
		d.kernels.Tile(&simd.Tile{
			A: a, ARow: k, ACol: 1, B: b[s*k*simd.StripWidth:], BStrip: k * simd.StripWidth, BStep: simd.StripWidth,
			C: c[s*simd.StripWidth:], CRow: strips * simd.StripWidth, K: k, Rows: rows, Strips: here, Last: simd.StripWidth,
		})
	}
}

// arithmetic returns the rates of one worker in products and in cells with data in its nearest
// memory, while all workers do the same: FLOP/s, and sigmoids and hyperbolic tangents per second.
// The cells are bands of an LSTM.
func (d *Device) arithmetic() (flops, pointwise float64, err error) {
	const trials, k, rounds, units = 12, 128, 1000, 128
	rows := d.kernels.MaxRows()
	strips := d.kernels.MaxStrips(rows)
	kernel := fused.New(d.kernels.Level(), cell.LSTM, fused.Inference)
	functions := 0
	for _, in := range cell.LSTM.Inference {
		if in.Op == cell.Sigmoid || in.Op == cell.Tanh {
			functions++
		}
	}
	for range trials {
		sec, err := d.together(func(int) {
			a, b := make([]float32, rows*k), make([]float32, strips*simd.StripWidth*k)
			c := make([]float32, rows*strips*simd.StripWidth)
			for range rounds {
				d.tiles(b, a, c, rows, k, strips)
			}
		})
		if err != nil {
			return 0, 0, err
		}
		flops = max(flops, 2*float64(rows*strips*simd.StripWidth*k*rounds)/sec)
		if sec, err = d.together(func(int) {
			vectors, at := make([]fused.Vector, len(kernel.Vectors())), make([]uintptr, len(kernel.Vectors()))
			for i := range vectors {
				vectors[i].Data = make([]float32, units)
			}
			for range rounds {
				kernel.Run(vectors, at, units, 1)
			}
		}); err != nil {
			return 0, 0, err
		}
		pointwise = max(pointwise, float64(functions)*units*rounds/sec)
	}
	return flops, pointwise, nil
}

// exchange measures a barrier of all workers, without data and with a vector of which each worker
// writes a part and reads all. Before each barrier comes a little work, as in a step. The results
// come from the differences between the best trials with and without the barrier and the vector.
//
// A host may at times place the processors of a virtual machine on the threads of one core. Then
// barriers take a third of the time, and work twice as long. Without the work, the best barrier and
// the best product would be measured on different machines.
func (d *Device) exchange() (barrier, rate float64, err error) {
	if d.workers == 1 {
		return 0, 0, nil
	}
	const trials, rounds, part, k = 12, 500, 1024, 256
	rows := d.kernels.MaxRows()
	strips := d.kernels.MaxStrips(rows)
	type worker struct{ a, b, c []float32 }
	workers := make([]worker, d.workers)
	for w := range workers {
		workers[w] = worker{make([]float32, rows*k), make([]float32, strips*simd.StripWidth*k), make([]float32, rows*strips*simd.StripWidth)}
	}
	states := make([]float32, 2*d.workers*part)
	meeting := d.pool.barrier(d.workers, 0, d.workers)
	least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)} // seconds of a round: work alone, with a barrier, with a vector too
	for range trials {
		for what := range least {
			sec, err := d.together(func(w int) {
				own := &workers[w]
				for i := range rounds {
					d.tiles(own.b, own.a, own.c, rows, k, strips)
					now := states[i%2*d.workers*part:][:d.workers*part] // two vectors in turn, so that one barrier is enough
					if what == 2 {
						d.kernels.Scale(now[w*part:(w+1)*part], now[w*part:(w+1)*part], 1)
					}
					if what >= 1 {
						d.pool.meet(meeting, w, d.workers)
					}
					if what == 2 {
						d.kernels.Sum(now)
					}
				}
			})
			if err != nil {
				return 0, 0, err
			}
			least[what] = min(least[what], sec/rounds)
		}
	}
	barrier = max(0, least[1]-least[0])
	if busy := least[2] - least[1]; busy > 0 {
		rate = 4 * float64((d.workers+1)*part) / busy
	}
	return barrier, rate, nil
}
