package cuda

import (
	"errors"
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/image"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Kernels are compiled in parallel and once each, kept in a folder between runs, and loaded when a
// program needs them.

// A pending is a kernel that is being compiled, or waits to be loaded.
type pending struct {
	codegen.Source
	done chan struct{}
	code []byte
	err  error
}

// Precompile implements device.Precompiler.
func (d *Device) Precompile(s *schedule.Schedule, k knob.Params) {
	const long = 1 << 14 // operations: lowering them takes longer than it saves
	if d.beginNetworks(s) || len(s.Nodes) > long {
		return // few kernels, or too many operations
	}
	p, err := d.lower(s, k)
	if err != nil {
		return
	}
	prepare, nodes, err := p.Emit(0)
	if err != nil {
		return
	}
	d.begin(slices.Concat(prepare, lower.Refresh(&p, 0), slices.Concat(nodes...)))
}

// begin starts to compile the new kernels of launches in parallel. It returns the keys of all.
func (d *Device) begin(commands []launch.Command) map[*codegen.Source]string {
	keys := map[*codegen.Source]string{}
	for _, s := range commands {
		if s.Launch == nil || keys[s.Source] != "" {
			continue
		}
		key := image.Key(d.compiler, s.Source.Name, codegen.Common()+s.Source.Text)
		keys[s.Source] = key
		if _, ok := d.kernels[key]; ok || d.ahead[key] != nil {
			continue
		}
		m := &pending{Source: *s.Source, done: make(chan struct{})}
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

// load sets the kernels of launches. It first waits for all running compilations, also those for
// other programs.
func (d *Device) load(commands []launch.Command) error {
	keys := d.begin(commands)
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
	for _, s := range commands {
		if s.Launch == nil {
			continue
		}
		s.Launch.Kernel = d.kernels[keys[s.Source]]
		if err := d.fits(s.Launch); err != nil {
			return err
		}
	}
	return nil
}

// fits declines a launch whose blocks cannot run, or cannot all run at the same time as they must.
func (d *Device) fits(l *driver.Launch) error {
	if l.Shared == 0 && !l.Cooperative {
		return nil
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
		return nil
	}
	n, err := d.driver.Resident(l.Kernel, l.Block[0]*l.Block[1]*l.Block[2], l.Shared)
	if err != nil {
		return fmt.Errorf("cuda: kernel %s: %w", l.Name, err)
	}
	if blocks := l.Grid[0] * l.Grid[1] * l.Grid[2]; n == 0 || l.Cooperative && n*d.properties.SMs < blocks {
		return fmt.Errorf("cuda: kernel %s: %w: %d blocks must run at the same time, and %d multiprocessors hold %d each",
			l.Name, schedule.ErrUnsupported, blocks, d.properties.SMs, n)
	}
	return nil
}

// compile returns the image of s.
func (d *Device) compile(s codegen.Source) ([]byte, error) {
	code, err := d.compiler.Compile(s.Name, codegen.Common()+s.Text)
	if err != nil {
		return nil, fmt.Errorf("cuda: compiling kernel %s: %w", s.Name, err)
	}
	return code, nil
}
