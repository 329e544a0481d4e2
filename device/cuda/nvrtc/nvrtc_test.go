package nvrtc_test

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/cuda/nvrtc"
	"rnnbench/device/devicetest"
)

// load loads NVRTC from RNNBENCH_CUDA_LIBS or from the system's folders; else it skips the test.
func load(t *testing.T) *nvrtc.Library {
	l, err := nvrtc.Load(filepath.SplitList(os.Getenv("RNNBENCH_CUDA_LIBS"))...)
	if err != nil {
		t.Skip(err)
	}
	return l
}

// TestKernels compiles the kernels of every operation of the device suite for two kinds of GPU: of the trials and
// settings of an operation, each is compiled for one of them. The emulator runs what its own compiler makes of
// them, so that the suite goes on. TestSamplesCompile of device/cuda compiles every file for both.
func TestKernels(t *testing.T) {
	l := load(t)
	host, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	all := &inTurn{Compiler: host}
	for _, capability := range []int{80, 90} {
		c, err := l.For(capability)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(c.Version())
		all.others = append(all.others, c)
	}
	driver, err := emulator.New(12, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := cuda.New(driver, all, "")
	defer d.Close()
	devicetest.Run(t, d)
	devicetest.Layers(t, d, devicetest.Stacks("stack")[:2])
	driver.Dry = true
	if _, err := d.Limits(); err != nil {
		t.Error(err)
	}
}

// inTurn compiles each kernel also with one of the others, by a hash of its text. It returns the first one's image.
type inTurn struct {
	driver.Compiler
	others []driver.Compiler
}

func (c *inTurn) Compile(name, source string) ([]byte, error) {
	n := crc32.ChecksumIEEE([]byte(source)) % uint32(len(c.others))
	if _, err := c.others[n].Compile(name, source); err != nil {
		return nil, err
	}
	return c.Compiler.Compile(name, source)
}

func TestErrors(t *testing.T) {
	l := load(t)
	c, err := l.For(90)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("wrong", "this is no C++"); err == nil {
		t.Error("nonsense compiles")
	} else {
		t.Log(err)
	}
	if _, err := l.For(13); err == nil {
		t.Error("there is a compiler for a GPU of before CUDA")
	}
	if next, err := l.For(9999); err != nil || next.Specific() || !c.Specific() {
		t.Errorf("for a GPU to come %v, %v", next, err)
	}
}
