//go:build cuda

package nvidia

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/schedule"
)

// A gpu implements driver.Driver by gorgonia.org/cu. It calls libcuda itself for what that package
// lacks, such as cooperative launches, limits of shared memory, capture and graphs.
type gpu struct {
	properties driver.Properties
	device     cu.Device
	context    context
	hosting    hosting
	extra      *library  // libcuda
	blas       *blas     // nil: not available
	spaces     []uintptr // workspaces of products, per stream
	dnn        *dnn      // nil: not available
	monitor    *monitor  // nil: not available
	sums       *sums     // nil: no other replicas

	modules   []cu.Module
	functions []cu.Function
	streams   []cu.Stream
	copies    *cu.Stream // stream of copies; nil: not created yet
	events    []cu.Event
	unused    map[bool][]driver.Event // freed events, by whether they are timed
	timed     map[driver.Event]bool
	graphs    map[driver.Graph]graph
	next      driver.Graph
	allowed   map[int]int // bytes of dynamic shared memory granted to each kernel

	sequences map[driver.Sequence]*sequence
	readied   driver.Sequence // the latest sequence
	stage     stage
	urgent    int32 // highest stream priority, for urgent launches; 0: no priorities
}

type graph struct{ graph, exec uintptr }

// workspace returns the bytes of cuBLAS's workspace for each stream: 32 MiB from Hopper on, else 8.
func workspace(capability int) int64 {
	if capability >= 90 {
		return 32 << 20
	}
	return 8 << 20
}

// newDriver starts CUDA (see init.c) and retains the primary context of GPU number index.
func newDriver(index int) (*gpu, error) {
	d := &gpu{device: cu.Device(index), timed: map[driver.Event]bool{}, unused: map[bool][]driver.Event{}, graphs: map[driver.Graph]graph{}, allowed: map[int]int{}, sequences: map[driver.Sequence]*sequence{}}
	d.properties.Index = index
	var err error
	if d.extra, err = loadLibrary("libcuda.so.1"); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.do("cuInit", 0); err != nil {
		return nil, fmt.Errorf("cuda: there is no GPU to use: %w", err)
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, failure(err)
	}
	if index < 0 || index >= n {
		return nil, fmt.Errorf("cuda: device cuda:%d does not exist: this machine has %d", index, n)
	}
	d.context.of = d.device
	if d.context.CUContext, err = d.device.RetainPrimaryCtx(); err != nil {
		return nil, failure(err)
	}
	if err := d.context.ready(d); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// inspect finds the GPU's properties and loads the libraries that are there.
func (d *gpu) inspect() (err error) {
	var least int32
	if d.extra.call("cuCtxGetStreamPriorityRange", address(&least), address(&d.urgent)) != 0 {
		d.urgent = 0
	}
	p := &d.properties
	if p.Model, err = d.device.Name(); err != nil {
		return failure(err)
	}
	var major, minor int
	for _, a := range []struct {
		to *int
		of cu.DeviceAttribute
	}{
		{&major, cu.ComputeCapabilityMajor}, {&minor, cu.ComputeCapabilityMinor}, {&p.SMs, cu.MultiprocessorCount},
		{&p.L2, cu.L2CacheSize}, {&p.Shared, sharedOptIn},
	} {
		if *a.to, err = d.device.Attribute(a.of); err != nil {
			return failure(err)
		}
	}
	p.Capability = 10*major + minor
	if p.Memory, err = d.device.TotalMem(); err != nil {
		return failure(err)
	}
	version := cu.Version()
	p.Libraries = map[string]string{"cuda": fmt.Sprintf("%d.%d", version/1000, version%1000/10), "sm": fmt.Sprint(p.Capability)}
	if d.blas, err = loadBLAS(); err != nil {
		p.NoProducts = err.Error()
	} else {
		p.Workspace = workspace(p.Capability)
		p.Libraries["cublas"] = d.blas.version
	}
	if d.dnn, err = loadDNN(); err != nil {
		p.NoNetworks = err.Error()
	} else {
		p.Libraries["cudnn"] = d.dnn.version
	}
	if d.monitor = loadMonitor(d.device); d.monitor != nil {
		p.Libraries["driver"] = d.monitor.driver
	}
	return nil
}

// sharedOptIn is the attribute of the most shared memory of a block, in bytes.
const sharedOptIn = cu.DeviceAttribute(97)

// broken reports whether a context is unusable after this error.
func broken(code int) bool {
	return slices.Contains([]int{214, 700, 702, 714, 715, 716, 717, 718, 719, 999}, code)
}

// failure classifies an error of package cu.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return classify(int(v.Int()), err.Error())
	}
	return err
}

// code turns the status that a function of libcuda returned into an error; 0: nil.
func (d *gpu) code(name string, code int) error {
	switch code {
	case 0:
		return nil
	case missing:
		return fmt.Errorf("%w: the driver has no %s", schedule.ErrUnsupported, name)
	}
	var at *byte
	word := fmt.Sprintf("%s: error %d", name, code)
	if d.extra.call("cuGetErrorName", uintptr(code), address(&at)) == 0 && at != nil {
		word += " " + text(unsafe.Slice(at, 64))
	}
	return classify(code, word)
}

func classify(code int, word string) error {
	switch {
	case code == 2:
		return fmt.Errorf("%w: %s", device.ErrMemory, word)
	case broken(code):
		return fmt.Errorf("%w: %s", device.ErrFault, word)
	}
	return errors.New(word)
}

func (d *gpu) do(name string, args ...uintptr) error {
	return d.code(name, d.extra.call(name, args...))
}

func (d *gpu) Properties() driver.Properties { return d.properties }

func (d *gpu) FreeMemory() (int64, error) {
	free, _, err := cu.MemInfo()
	return free, failure(err)
}

func (d *gpu) Alloc(bytes int64) (driver.Pointer, error) {
	p, err := cu.MemAlloc(bytes)
	return driver.Pointer(p), failure(err)
}

func (d *gpu) Free(p driver.Pointer) error { return failure(cu.MemFree(cu.DevicePtr(p))) }

// alone runs f while no stream is busy: f uses the default stream, which does not wait for ours.
func (d *gpu) alone(f func() error) error {
	if err := cu.Synchronize(); err != nil {
		return failure(err)
	}
	if err := f(); err != nil {
		return failure(err)
	}
	return failure(cu.Synchronize())
}

func (d *gpu) Clear(parts ...driver.Extent) error {
	return d.alone(func() error {
		for _, p := range parts {
			if err := cu.MemsetD8(cu.DevicePtr(p.At), 0, p.Bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *gpu) Upload(to driver.Pointer, from []byte) error {
	return d.alone(func() error {
		if len(from) >= staged {
			return d.stage.upload(d, to, from)
		}
		return cu.MemcpyHtoD(cu.DevicePtr(to), unsafe.Pointer(&from[0]), int64(len(from)))
	})
}

func (d *gpu) Download(to []byte, from driver.Pointer) error {
	return d.alone(func() error {
		if len(to) >= staged {
			return d.stage.download(d, to, from)
		}
		return cu.MemcpyDtoH(unsafe.Pointer(&to[0]), cu.DevicePtr(from), int64(len(to)))
	})
}

func (d *gpu) Load(image []byte, name string) (driver.Kernel, error) {
	m, err := cu.LoadData(string(image))
	if err != nil {
		return driver.Kernel{}, failure(err)
	}
	d.modules = append(d.modules, m)
	f, err := m.Function(name)
	if err != nil {
		return driver.Kernel{}, failure(err)
	}
	k := driver.Kernel{ID: len(d.functions)}
	for _, a := range []struct {
		to *int
		of cu.FunctionAttribute
	}{{&k.Registers, cu.NumRegs}, {&k.Static, cu.SharedSizeBytes}, {&k.Local, cu.LocalSizeBytes}} {
		if *a.to, err = f.Attribute(a.of); err != nil {
			return driver.Kernel{}, failure(err)
		}
	}
	d.functions = append(d.functions, f)
	return k, nil
}

// handle returns the CUDA handle in a structure of cu, which holds nothing else.
func handle[T cu.Function | cu.Stream | cu.Event](v *T) uintptr {
	return *(*uintptr)(unsafe.Pointer(v))
}

func contextHandle(c *context) uintptr { return *(*uintptr)(unsafe.Pointer(&c.CUContext)) }

// maxDynamic is the attribute of a kernel's dynamic shared memory.
const maxDynamic = 8

// Values of launchAttribute.id.
const (
	cooperative = 2
	clusterSize = 4
	early       = 6 // programmatic stream serialisation: begins when the kernel before allows it
	priority    = 8
)

// nonPortable is the attribute that lets clusters have more than 8 blocks.
const nonPortable = 14

func (d *gpu) Streams(n int) error {
	for len(d.streams) < n {
		if err := d.addStream(); err != nil {
			return err
		}
	}
	return nil
}

// addStream adds a stream with its cuBLAS handle and workspace. After an error it has added
// nothing, so that the lists stay equally long.
func (d *gpu) addStream() error {
	s, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return failure(err)
	}
	if d.blas != nil {
		space, err := cu.MemAlloc(d.properties.Workspace)
		if err != nil {
			return errors.Join(failure(err), failure(s.Destroy()))
		}
		if err := d.blas.add(handle(&s), uintptr(space), d.properties.Workspace); err != nil {
			return errors.Join(err, failure(cu.MemFree(space)), failure(s.Destroy()))
		}
		d.spaces = append(d.spaces, uintptr(space))
	}
	d.streams = append(d.streams, s)
	return nil
}

func (d *gpu) NewEvent(timed bool) (driver.Event, error) {
	if free := d.unused[timed]; len(free) > 0 {
		e := free[len(free)-1]
		d.unused[timed] = free[:len(free)-1]
		return e, nil
	}
	flags := cu.DisableTiming
	if timed {
		flags = cu.DefaultEvent
	}
	ev, err := cu.MakeEvent(flags)
	if err != nil {
		return 0, failure(err)
	}
	d.events = append(d.events, ev)
	e := driver.Event(len(d.events) - 1)
	d.timed[e] = timed
	return e, nil
}

func (d *gpu) FreeEvent(e driver.Event) error {
	d.unused[d.timed[e]] = append(d.unused[d.timed[e]], e)
	return nil
}

// BeginNetwork implements driver.Networks. It creates only networks of the dynamic algorithm ahead,
// for which cuDNN compiles kernels.
func (d *gpu) BeginNetwork(n driver.Network) {
	if n.Algorithm == persistDynamic && d.library() == nil {
		d.dnn.begin(n, d.context.CUContext)
	}
}

// library prepares cuDNN on stream 0.
func (d *gpu) library() error {
	err := d.Streams(1)
	if err == nil {
		err = d.networks(0)
	}
	if err == nil {
		err = d.dnn.none()
	}
	return err
}

// NewNetwork implements driver.Networks. If a builder failed, it tries again, to return the error.
func (d *gpu) NewNetwork(n driver.Network) (int, driver.Sizes, error) {
	if err := d.library(); err != nil {
		return 0, driver.Sizes{}, err
	}
	w := d.dnn.take(n)
	if w == nil {
		var err error
		if w, err = d.dnn.network(n, d.dnn.handles[0]); err != nil {
			return 0, driver.Sizes{}, err
		}
	}
	d.dnn.networks = append(d.dnn.networks, w)
	return len(d.dnn.networks) - 1, w.sizes, nil
}

// networks creates cuDNN's handles up to a stream. They take memory and time, so programs without
// networks have none.
func (d *gpu) networks(stream int) error {
	for len(d.dnn.handles) <= stream {
		if err := d.dnn.add(handle(&d.streams[len(d.dnn.handles)])); err != nil {
			return err
		}
	}
	return nil
}

func (d *gpu) Record(e driver.Event, stream int) error {
	on, err := d.stream(stream)
	if err != nil {
		return err
	}
	return failure(d.events[e].Record(*on))
}

func (d *gpu) Await(e driver.Event) error { return failure(d.events[e].Synchronize()) }

func (d *gpu) Elapsed(from, to driver.Event) (float64, error) {
	ms, err := d.events[from].Elapsed(d.events[to])
	return ms / 1e3, failure(err)
}

// relaxed is the capture mode in which this thread may also make unsafe calls.
const relaxed = 2

func (d *gpu) BeginCapture() error {
	return d.do("cuStreamBeginCapture_v2", handle(&d.streams[0]), relaxed)
}

func (d *gpu) EndCapture() (driver.Graph, error) {
	var g graph
	if err := d.do("cuStreamEndCapture", handle(&d.streams[0]), address(&g.graph)); err != nil {
		return 0, err
	}
	if err := d.do("cuGraphInstantiateWithFlags", address(&g.exec), g.graph, 0); err != nil {
		return 0, errors.Join(err, d.do("cuGraphDestroy", g.graph))
	}
	d.next++
	d.graphs[d.next] = g
	return d.next, nil
}

func (d *gpu) Replay(g driver.Graph) error {
	return d.do("cuGraphLaunch", d.graphs[g].exec, handle(&d.streams[0]))
}

func (d *gpu) FreeGraph(id driver.Graph) error {
	g := d.graphs[id]
	delete(d.graphs, id)
	return errors.Join(d.do("cuGraphExecDestroy", g.exec), d.do("cuGraphDestroy", g.graph))
}

func (d *gpu) Throttled() bool { return d.monitor != nil && d.monitor.throttled() != "" }

// Clock implements driver.Clocked.
func (d *gpu) Clock() float64 {
	if d.monitor == nil {
		return 0
	}
	return d.monitor.clock()
}

func (d *gpu) Power() (device.Power, error) {
	if d.monitor == nil {
		return device.Power{}, errors.New("the driver's management library is missing: install libnvidia-ml.so.1")
	}
	return d.monitor.power()
}

func (d *gpu) Survey() []device.Finding {
	if d.monitor == nil {
		return []device.Finding{{Name: "state", Value: "unknown", Remedy: "install the driver's management library, libnvidia-ml.so.1"}}
	}
	return d.monitor.survey()
}
