package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
)

// machines are GPUs whose properties are known without one: as drivers report them. Clusters were
// seen to run at the same time in these numbers.
var machines = map[string]driver.Properties{
	"h200": {
		Model: "NVIDIA H200", Capability: 90, Hopper: true, SMs: 132, Shared: 227 << 10, L2: 60 << 20, Memory: 141e9, Workspace: 32 << 20,
		Clusters:   map[int]int{1: 132, 2: 66, 4: 31, 8: 15, 16: 7},
		NoNetworks: "the vendor's library needs a GPU",
	},
}

// Machines names the GPUs that Machine knows.
func Machines() []string { return slices.Sorted(maps.Keys(machines)) }

// Machine returns a described GPU of that name. It explains and predicts schedules, but runs none.
func Machine(name string) (*Device, error) {
	p, ok := machines[name]
	if !ok {
		return nil, fmt.Errorf("cuda: no GPU named %q is known: %s", name, strings.Join(Machines(), ", "))
	}
	p.Clusters = maps.Clone(p.Clusters)
	return New(blueprint{properties: p}, noCompiler{}, ""), nil
}

// A blueprint is the driver of a GPU that is only described. Calls that need the GPU fail. Calls
// that come only after an allocation are never made.
type blueprint struct {
	driver.Driver
	properties driver.Properties
}

var errBlueprint = errors.New("this GPU is only described, not present: explain works, runs do not")

func (b blueprint) Properties() driver.Properties            { return b.properties }
func (b blueprint) FreeMemory() (int64, error)               { return b.properties.Memory, nil }
func (blueprint) Alloc(int64) (driver.Pointer, error)        { return 0, errBlueprint }
func (blueprint) Streams(int) error                          { return errBlueprint }
func (blueprint) Load([]byte, string) (driver.Kernel, error) { return driver.Kernel{}, errBlueprint }
func (blueprint) NewEvent(bool) (driver.Event, error)        { return 0, errBlueprint }
func (blueprint) FreeEvent(driver.Event) error               { return nil }
func (blueprint) Throttled() bool                            { return false }
func (blueprint) Power() (device.Power, error) {
	return device.Power{}, errors.New("a GPU that is not present has no energy counter")
}
func (blueprint) Survey() []device.Finding { return nil }
func (blueprint) Close() error             { return nil }

// A noCompiler compiles nothing.
type noCompiler struct{}

func (noCompiler) Version() string                        { return "" }
func (noCompiler) Compile(string, string) ([]byte, error) { return nil, errBlueprint }
