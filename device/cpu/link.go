package cpu

import (
	"errors"
	"math"
	"os"
	"sync"
	"time"

	"rnnbench/device"
	"rnnbench/device/allreduce"
)

// link measures sums over two replicas on different processors: of one value and of a few
// megabytes. In a ring of two, each replica sends half of the bytes twice. The result is zero with
// one worker, and on systems without replicas.
func (d *Device) link() (device.Link, error) {
	if d.workers < 2 {
		return device.Link{}, nil
	}
	path, err := allreduce.Create("", 2)
	if err != nil {
		return device.Link{}, nil // there is no room for the file
	}
	defer os.Remove(path)
	var groups [2]*allreduce.Group
	for i := range groups {
		g, err := allreduce.Join(path, i, 2)
		if err != nil {
			return device.Link{}, nil // this system has no replicas
		}
		defer g.Close()
		groups[i] = g
	}
	const trials, many, bytes = 8, 20, 4 << 20
	short, err := summing(groups, 1, trials, many)
	if err != nil {
		return device.Link{}, err
	}
	long, err := summing(groups, bytes/4, trials, 2)
	if err != nil {
		return device.Link{}, err
	}
	l := device.Link{Seconds: short / 2}
	if long > short {
		l.Rate = bytes / (long - short)
	}
	return l, nil
}

// summing returns the least seconds of a sum of so many values over two replicas.
func summing(groups [2]*allreduce.Group, values, trials, many int) (float64, error) {
	least := math.Inf(1)
	vectors := [2][]float32{make([]float32, values), make([]float32, values)}
	for range trials {
		var errs [2]error
		var all sync.WaitGroup
		start := time.Now()
		for i, g := range groups {
			all.Go(func() {
				for range many {
					errs[i] = errors.Join(errs[i], g.Sum(vectors[i]))
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return 0, err
		}
		least = min(least, time.Since(start).Seconds()/float64(many))
	}
	return least, nil
}
