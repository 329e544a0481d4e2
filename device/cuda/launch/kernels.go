package launch

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
)

// Kernels lists what commands launch, equal ones merged. Registers are known once the kernels have
// been loaded.
func Kernels(commands []Command) []device.Kernel {
	all := make([]device.Kernel, 0, len(commands))
	shapes := map[driver.Product]device.Kernel{}
	for i := range commands {
		switch c := &commands[i]; {
		case c.Launch != nil:
			all = append(all, c.kernel())
		case c.Product != nil:
			shape := driver.Product{M: c.Product.M, N: c.Product.N, K: c.Product.K, Operands: c.Product.Operands, TF32: c.Product.TF32}
			k, ok := shapes[shape]
			if !ok {
				k = product(shape)
				shapes[shape] = k
			}
			all = append(all, k)
		case c.Network != nil:
			all = append(all, device.Kernel{Name: "network", Variant: "library", Launches: 1})
		case c.Sum != nil:
			all = append(all, device.Kernel{Name: "allreduce", Variant: "library", Launches: 1})
		}
	}
	return device.Merge(all)
}

// kernel describes a launch.
func (c *Command) kernel() device.Kernel {
	l := c.Launch
	return device.Kernel{
		Name: l.Name, Variant: c.About.Variant, Config: c.About.Config, Grid: l.Grid, Block: l.Block, Cluster: l.Cluster,
		Registers: l.Kernel.Registers, Shared: l.Shared + l.Kernel.Static, Spills: l.Kernel.Local, Launches: 1,
		Seconds: c.About.Seconds, Error: c.About.Error, Group: c.About.Group,
	}
}

// product describes a product by the vendor's library, which chooses a kernel of its own.
func product(p driver.Product) device.Kernel {
	e := p.Operands.String()
	switch {
	case p.TF32:
		e = "tf32"
	case p.Operands == driver.Single:
		e = "fp32"
	}
	return device.Kernel{Name: "product", Variant: "library", Config: fmt.Sprintf("%d×%d×%d of %s", p.M, p.N, p.K, e), Launches: 1}
}
