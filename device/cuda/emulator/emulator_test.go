package emulator_test

import (
	"strings"
	"testing"
	"unsafe"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
)

// TestParted: a kernel fails if the lanes of a warp leave a wait one by one and then arrive at a
// named barrier. It passes if the warp comes together first.
func TestParted(t *testing.T) {
	for _, test := range []struct {
		name, wait string
		fails      bool
	}{
		{"one by one", "while (!bar_try(bar, 0)) pause();", true},
		{"by words", "while (!get_here(word)) rest();", true},
		{"vote", "while (!__all_sync(0xffffffff, bar_try(bar, 0))) pause();", false},
		{"warp", "while (!bar_try(bar, 0)) pause(); __syncwarp();", false},
		{"block", "while (!bar_try(bar, 0)) pause(); __syncthreads();", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := parting(t, test.wait); (err != nil) != test.fails || err != nil && !strings.Contains(err.Error(), "probe: lanes that left a wait one by one") {
				t.Error(err)
			}
		})
	}
}

// parting runs a kernel of two warps. One waits for the other and then arrives at a barrier.
func parting(t *testing.T, wait string) error {
	c, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	image, err := c.Compile("probe", `
extern "C" __global__ void probe(int* out) {
  DYNAMIC_SHARED(memory);
  const shared_t bar = shared_address(memory);
  int* const word = (int*)(memory + 16);
  if (threadIdx.x == 0) bar_init(bar, 1), *word = 0;
  __syncthreads();
  if (threadIdx.x == 32) bar_arrive(bar), put_here(word, 1);
  if (threadIdx.x < 32) {
    `+wait+`
    arrive_at(1, 64);
  } else {
    `+strings.Repeat("__syncthreads(); ", strings.Count(wait, "__syncthreads"))+`
    meet_at(1, 64);
  }
  if (threadIdx.x == 32) *out = 1;
}`)
	if err != nil {
		t.Fatal(err)
	}
	d, err := emulator.New(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k, err := d.Load(image, "probe")
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Sequence([]driver.Call{{Launch: &driver.Launch{Kernel: k, Name: "probe", Grid: [3]int{1, 1, 1}, Block: [3]int{64, 1, 1}, Shared: 64, Args: []uint64{uint64(out)}, Params: make([]unsafe.Pointer, 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Streams(1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Issue(s); err != nil {
		t.Fatal(err)
	}
	var got [4]byte
	if err := d.Download(got[:], out); err != nil {
		return err
	}
	if got[0] != 1 {
		t.Error("the kernel has not run")
	}
	return nil
}
