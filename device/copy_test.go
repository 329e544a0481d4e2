package device_test

import (
	"slices"
	"testing"

	"rnnbench/device"
)

func TestCopy(t *testing.T) {
	for _, n := range []int{0, 1, 1<<18 - 1, 1<<19 + 3, 1<<20 + 5} {
		src, dst := make([]float32, n), make([]float32, n+2)
		for i := range src {
			src[i] = float32(i)
		}
		if got := device.Copy(dst, src); got != n || !slices.Equal(dst[:n], src) || dst[n]+dst[n+1] != 0 {
			t.Errorf("%d elements: Copy returned %d, or the values are wrong", n, got)
		}
		if got := device.Copy(dst[:n/2], src); got != n/2 {
			t.Errorf("%d of %d elements: %d", n/2, n, got)
		}
	}
}
