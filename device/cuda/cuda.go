// Package cuda runs schedules on NVIDIA GPUs.
//
// Each operation becomes launches of kernels and products of the vendor's
// library, their geometry and arguments computed once, by plain Go that needs
// no GPU. Kernels are CUDA C++: files of kernels/, or text generated from the
// programs of cells, compiled at run time for the card at hand and cached on
// disk. Everything that touches a GPU is behind Driver. Streams are the GPU's,
// waits are events, and a run can be captured once and replayed as a graph.
package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Device is one GPU. Like a Driver it is for one goroutine.
type Device struct {
	driver     driver.Driver
	compiler   driver.Compiler
	cache      string // folder of compiled kernels; "": none
	properties driver.Properties
	kernels    map[string]driver.Kernel // by key
	ahead      map[string]*image        // by key; not loaded yet
	compilers  chan struct{}            // as many as compile at the same time
	eviction   driver.Pointer           // memory for Evict; 0: none yet
	networks   map[driver.Network]lower.Network
}

var (
	_ device.Meter       = (*Device)(nil)
	_ device.Inspector   = (*Device)(nil)
	_ device.Evicter     = (*Device)(nil)
	_ device.Anticipator = (*Device)(nil)
)

// New returns the device behind a driver. Compiled kernels are kept in the
// folder cache, unless that is "".
func New(d driver.Driver, c driver.Compiler, cache string) *Device {
	return &Device{driver: d, compiler: c, cache: cache, properties: d.Properties(), kernels: map[string]driver.Kernel{}, ahead: map[string]*image{}, compilers: make(chan struct{}, runtime.NumCPU()), networks: map[driver.Network]lower.Network{}}
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
		Precision: schedule.Precisions(), Memory: free, Libraries: p.Libraries,
	}
}

// slug keeps what can be part of a file name.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// Knobs implements device.Device.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	return slices.Concat([]knob.Knob{graphKnob()}, gemm.ProductKnobs(s), gemm.SkinnyKnobs(s), persistent.Knobs(s), scan.Knobs(s))
}

// Vocabulary implements device.Device.
func (d *Device) Vocabulary() []knob.Knob { return Vocabulary() }

// Vocabulary lists every knob that a GPU has, whatever its capability, with the
// values that one of them may take.
func Vocabulary() []knob.Knob {
	return slices.Concat([]knob.Knob{graphKnob(), gemm.PickKnob(), gemm.SplitKnob()}, gemm.SkinnyKnobDocs(), persistent.KnobDocs(true), []knob.Knob{scan.Knob()})
}

func graphKnob() knob.Knob {
	return knob.Knob{Name: "graph", Doc: "1: capture a run once as a CUDA graph and replay it; 0: launch operation by operation", Values: []int{0, 1}}
}

// graphNode is about what a graph takes on the GPU per node, in bytes.
const graphNode = 2048

// probe asks how many clusters of each size there is room for.
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
		if err == nil { // else there are none so large
			clusters[size] = n
		}
	}
	p.Clusters = clusters
	return nil
}

// Memory implements device.Device.
func (d *Device) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	p, err := d.plan(s, k)
	if err != nil {
		return 0, err
	}
	bytes := p.Bytes()
	if p.Knobs["graph"] != 0 {
		bytes += graphNode * int64(len(s.Nodes))
	}
	return bytes, nil
}

// Evict implements device.Evicter: it overwrites twice what the last cache holds.
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

// Close implements device.Device.
func (d *Device) Close() error { return d.driver.Close() }

// key identifies what compiling s yields and how a file has it, since other versions of this program keep theirs in the same place.
func (d *Device) key(s codegen.Source) string {
	sum := sha256.New()
	for _, text := range []string{"behind its sum", d.compiler.Version(), s.Name, codegen.Intrinsics(), codegen.Common(), s.Text} {
		fmt.Fprintf(sum, "%d %s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:40]
}

// An image is a kernel that is being compiled, or waits to be loaded.
type image struct {
	codegen.Source
	done chan struct{}
	code []byte
	err  error
}

// Anticipate implements device.Anticipator.
func (d *Device) Anticipate(s *schedule.Schedule, k knob.Params) {
	const long = 1 << 14 // operations: going through them takes longer than it saves
	if d.beginNetworks(s) || len(s.Nodes) > long {
		return // there are few kernels besides
	}
	p, err := d.plan(s, k)
	if err != nil {
		return
	}
	prepare, nodes, err := p.Emit(0)
	if err != nil {
		return
	}
	d.begin(append(prepare, slices.Concat(nodes...)...))
}

// begin has kernels of launches that are new compiled side by side. It returns
// the keys of all.
func (d *Device) begin(steps []launch.Command) map[*codegen.Source]string {
	keys := map[*codegen.Source]string{}
	for _, s := range steps {
		if s.Launch == nil || keys[s.Source] != "" {
			continue
		}
		key := d.key(*s.Source)
		keys[s.Source] = key
		if _, ok := d.kernels[key]; ok || d.ahead[key] != nil {
			continue
		}
		m := &image{Source: *s.Source, done: make(chan struct{})}
		d.ahead[key] = m
		go func() {
			defer close(m.done)
			d.compilers <- struct{}{}
			m.code, m.err = d.compile(m.Source)
			<-d.compilers
		}()
	}
	return keys
}

// load sets the kernels of launches. It waits for all that are being compiled,
// those of other programs too.
func (d *Device) load(steps []launch.Command) error {
	keys := d.begin(steps)
	for _, m := range d.ahead {
		<-m.done
	}
	for _, key := range keys {
		m := d.ahead[key]
		if m == nil {
			continue
		}
		delete(d.ahead, key)
		if m.err != nil {
			return m.err
		}
		k, err := d.driver.Load(m.code, m.Name)
		if err != nil {
			return fmt.Errorf("cuda: loading kernel %s: %w", m.Name, err)
		}
		d.kernels[key] = k
	}
	for _, s := range steps {
		if s.Launch == nil {
			continue
		}
		l := s.Launch
		l.Kernel = d.kernels[keys[s.Source]]
		if l.Shared == 0 && !l.Cooperative {
			continue
		}
		if l.Cluster > 0 {
			n, err := d.driver.Clusters(l.Kernel, l.Cluster, l.Block[0], l.Shared)
			if err != nil || n == 0 {
				return errors.Join(err, fmt.Errorf("cuda: kernel %s: %w: not even one cluster of %d blocks of %d threads, %d registers and %d KiB of shared memory fits",
					l.Name, schedule.ErrUnsupported, l.Cluster, l.Block[0], l.Kernel.Registers, l.Shared>>10))
			}
			if l.Cooperative && n*l.Cluster < l.Grid[0] {
				return fmt.Errorf("cuda: kernel %s: %w: %d clusters of %d blocks must run at the same time, and %d fit",
					l.Name, schedule.ErrUnsupported, l.Grid[0]/l.Cluster, l.Cluster, n)
			}
			continue
		}
		n, err := d.driver.Resident(l.Kernel, l.Block[0]*l.Block[1]*l.Block[2], l.Shared)
		if err != nil {
			return fmt.Errorf("cuda: kernel %s: %w", l.Name, err)
		}
		if blocks := l.Grid[0] * l.Grid[1] * l.Grid[2]; n == 0 || l.Cooperative && n*d.properties.SMs < blocks {
			return fmt.Errorf("cuda: kernel %s: %w: %d blocks must run at the same time, and %d multiprocessors hold %d each",
				l.Name, schedule.ErrUnsupported, blocks, d.properties.SMs, n)
		}
	}
	return nil
}

// compile returns the image of s from the cache, or compiles it and keeps it
// there, behind its sum: what was damaged since is compiled again.
func (d *Device) compile(s codegen.Source) ([]byte, error) {
	path := ""
	if d.cache != "" {
		path = filepath.Join(d.cache, d.key(s))
		if kept, err := os.ReadFile(path); err == nil && len(kept) > sha256.Size {
			if sum := sha256.Sum256(kept[sha256.Size:]); bytes.Equal(kept[:sha256.Size], sum[:]) {
				return kept[sha256.Size:], nil
			}
		}
	}
	image, err := d.compiler.Compile(s.Name, codegen.Common()+s.Text)
	if err != nil {
		return nil, fmt.Errorf("cuda: compiling kernel %s: %w", s.Name, err)
	}
	if path != "" {
		sum := sha256.Sum256(image)
		keep(path, append(sum[:], image...))
	}
	return image, nil
}

// keep writes a file in one piece, or not at all: without it, the kernel is
// compiled again.
func keep(path string, data []byte) {
	if os.MkdirAll(filepath.Dir(path), 0o777) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new*")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}
