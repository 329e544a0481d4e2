//go:build cuda

package main

import (
	"rnnbench/device"
	"rnnbench/device/cuda/nvidia"
	"rnnbench/layer"
)

func init() {
	layer.GPU = func(index int) (device.Device, error) {
		d, err := nvidia.Open(index, nil)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}
