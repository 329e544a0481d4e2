// Package cuda runs schedules on NVIDIA GPUs.
//
// It is a small compiler. Package lower takes a schedule through a list of passes to commands:
// kernels, products and networks with their geometry and arguments. Packages pointwise, gemm,
// persistent and scan have the kernels, each beside the Go code that launches it. Package codegen
// writes cells as CUDA C++. All of this is plain Go and needs no GPU.
//
// This package compiles kernels for the GPU at hand, keeps them on disk, and runs programs. It
// reaches a GPU only through driver.Driver. Streams are the GPU's streams, and waits are events. A
// run can be captured once and replayed as a graph.
package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/image"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/device/cuda/scan"
	"rnnbench/internal/memory"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Device is one GPU. Like a Driver, it serves one caller at a time.
type Device struct {
	wattmeter
	driver     driver.Driver
	compiler   driver.Compiler
	properties driver.Properties
	kernels    map[string]driver.Kernel // by key
	ahead      map[string]*pending      // by key; not loaded yet
	compilers  chan struct{}            // limits how many compile at the same time
	eviction   driver.Pointer           // memory for Evict; 0: none yet
	networks   map[driver.Network]lower.Network
	timed      bool           // the next prediction measures dispatch
	dispatch   lower.Dispatch // measured cost of launches; 0: as on the GPU of the model's fit
}

var (
	_ device.Meter       = (*Device)(nil)
	_ device.Inspector   = (*Device)(nil)
	_ device.PowerMeter  = (*Device)(nil)
	_ device.LaunchMeter = (*Device)(nil)
	_ device.Evicter     = (*Device)(nil)
	_ device.Precompiler = (*Device)(nil)
	_ device.Threaded    = (*Device)(nil)
)

// New returns the device behind a driver. It keeps compiled kernels in the folder cache, unless
// that is "".
func New(d driver.Driver, c driver.Compiler, cache string) *Device {
	return &Device{
		wattmeter: wattmeter{d}, driver: d, compiler: image.Kept(c, cache), properties: d.Properties(),
		kernels: map[string]driver.Kernel{}, ahead: map[string]*pending{}, compilers: make(chan struct{}, runtime.NumCPU()),
		networks: map[driver.Network]lower.Network{},
	}
}

// Info implements device.Device.
func (d *Device) Info() device.Info {
	p := d.properties
	free, err := d.driver.FreeMemory()
	if err != nil {
		free = 0
	}
	return device.Info{
		Name: fmt.Sprintf("cuda:%d", p.Index), Model: p.Model, Key: "cuda-" + slug(p.Model), Workers: p.SMs,
		Precision: precisions(), Memory: free, Host: memory.Available(), Libraries: p.Libraries,
	}
}

// precisions lists those of schedule that GPUs have.
func precisions() []string {
	return slices.DeleteFunc(schedule.Precisions(), func(name string) bool { return name == schedule.INT8.String() })
}

// slug replaces all characters but letters and digits by hyphens, for file names.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// Knobs implements device.Device.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	return slices.Concat([]knob.Knob{graphKnob()}, gemm.ProductKnobs(s), gemm.SkinnyKnobs(s), persistent.Knobs(s), scan.Knobs(s), pointwise.SerialKnobs(s))
}

// Vocabulary implements device.Device.
func (d *Device) Vocabulary() []knob.Knob { return Vocabulary() }

// Vocabulary lists every knob of GPUs of any capability, with all values that it may have.
func Vocabulary() []knob.Knob {
	return slices.Concat([]knob.Knob{graphKnob(), gemm.SplitKnob(), gemm.SumsKnob()}, gemm.SkinnyKnobDocs(), persistent.KnobDocs(true), scan.KnobDocs(), []knob.Knob{pointwise.SerialKnob()})
}

func graphKnob() knob.Knob {
	return knob.Knob{Name: "graph", Doc: "1: capture a run once as a CUDA graph and replay it; 0: launch operation by operation", Values: []int{0, 1}}
}

// graphNode is about how many bytes of the GPU's memory a graph takes per node.
const graphNode = 2048

// probe finds how many clusters of each size can run at the same time.
func (d *Device) probe() error {
	p := &d.properties
	if p.Clusters != nil || p.Capability < 90 {
		return nil
	}
	s := launch.Command{Source: &codegen.Source{Name: "probe", Text: "extern \"C\" __global__ void probe(unsigned* word) {}\n"}, Launch: &driver.Launch{Name: "probe"}}
	if err := d.load([]launch.Command{s}); err != nil {
		return err
	}
	clusters := map[int]int{}
	for _, size := range persistent.ClusterSizes() {
		n, err := d.driver.Clusters(s.Launch.Kernel, size, 1024, p.Shared)
		if errors.Is(err, device.ErrFault) {
			return fmt.Errorf("cuda: clusters of %d: %w", size, err)
		}
		if err == nil { // an error means that the GPU has no clusters of this size
			clusters[size] = n
		}
	}
	p.Clusters = clusters
	return nil
}

// Memory implements device.Device.
func (d *Device) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	p, err := d.lower(s, k)
	if err != nil {
		return 0, err
	}
	if err := p.Fits(); err != nil {
		return 0, err
	}
	bytes := p.Bytes()
	if p.Knobs["graph"] != 0 {
		bytes += graphNode * int64(len(s.Nodes))
	}
	return bytes, nil
}

// Evict implements device.Evicter: it overwrites twice the size of the L2 cache.
func (d *Device) Evict() error {
	bytes := 2 * int64(d.properties.L2)
	if d.eviction == 0 {
		var err error
		if d.eviction, err = d.driver.Alloc(bytes); err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
	}
	return d.driver.Clear(driver.Extent{At: d.eviction, Bytes: bytes})
}

// Enter implements device.Threaded.
func (d *Device) Enter() (leave func(), err error) { return d.driver.Enter() }

// Close implements device.Device.
func (d *Device) Close() error {
	if d.eviction == 0 {
		return d.driver.Close()
	}
	leave, err := d.Enter()
	if err != nil {
		return err
	}
	err = d.driver.Free(d.eviction)
	d.eviction = 0
	leave()
	return errors.Join(err, d.driver.Close())
}
