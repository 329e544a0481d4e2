package model

import (
	"fmt"
	"math"
)

// A GPU is what a machine needs beyond its levels, to predict kernels whose blocks hold a layer.
// Its constants are fitted to measurements, with a relative error of Error.
type GPU struct {
	Cluster int     `toml:"cluster" json:"cluster"`                    // most blocks that reach each other's shared memory
	Alone   float64 `toml:"alone" json:"alone_s"`                      // seconds of a step of one block, besides its products
	Push    float64 `toml:"push" json:"push_s"`                        // seconds in which the blocks of a cluster exchange states
	Gates   float64 `toml:"gates" json:"gates_s"`                      // seconds that a step of several gates takes longer than one of a single gate
	Reach   float64 `toml:"reach" json:"reach"`                        // share of the peak that a block's products reach
	Stream  float64 `toml:"stream" json:"stream_bytes_per_s"`          // bytes a second that all blocks read from the cache that they share; 0: as its level says
	Launch  float64 `toml:"launch" json:"launch_s"`                    // seconds in which the host launches a kernel
	Graph   float64 `toml:"graph_launch" json:"graph_launch_s"`        // the same in a graph
	Error   float64 `toml:"error" json:"error"`                        // median relative error of a step where the constants were fitted
	Split   float64 `toml:"split_products" json:"split_fp32_products"` // 16-bit products that replace one of single precision; 0: single precision has its own
}

// check reports the first invalid number.
func (g *GPU) check() string {
	for _, v := range []float64{g.Alone, g.Push, g.Gates, g.Launch, g.Graph, g.Error, g.Split, g.Stream} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return "gpu: seconds, rates, error and split_products must not be negative"
		}
	}
	switch {
	case g.Cluster < 0 || g.Cluster > 1<<16:
		return fmt.Sprintf("gpu: cluster is %d: it must be 0 to %d", g.Cluster, 1<<16)
	case !(g.Reach > 0 && g.Reach <= 1):
		return fmt.Sprintf("gpu: reach is %v: it must be above 0 and at most 1", g.Reach)
	}
	return ""
}

// A Group is the blocks of a kernel that share one copy of a layer's weights.
type Group struct {
	Blocks  int  // of a group
	Groups  int  // that run at the same time
	Samples int  // sequences that a group multiplies at a time
	Spread  bool // blocks are spread over the GPU, so states travel through its shared cache
	Tensor  bool // products run on tensor cores
}

// check reports a group that no kernel can have.
func (g Group) check() error {
	if g.Blocks < 1 || g.Groups < 1 || g.Samples < 1 {
		return fmt.Errorf("model: %d groups of %d blocks with %d sequences: each must be at least 1", g.Groups, g.Blocks, g.Samples)
	}
	return nil
}

// turns is the number of turns of a group in a step of batch sequences.
func (g Group) turns(batch int) int { return ceil(batch, g.Samples*g.Groups) }

// Exchange is the least time, in seconds, in which the blocks of g get each other's states. The threads of a
// single block synchronise and read each other's in the block's own memory.
func (m *Machine) Exchange(g Group) float64 {
	switch {
	case g.Blocks == 1:
		if m.shared() == 0 {
			return 0
		}
		own := m.Levels[m.shared()-1]
		return own.C + own.L
	case m.GPU != nil && !g.Spread:
		return m.GPU.Push
	}
	return m.Levels[m.shared()].L
}

// shared is the innermost level that all cores share.
func (m *Machine) shared() int { return min(m.Private(), len(m.Levels)-1) }

// cores is the number of cores: the modules below the shared level.
func (m *Machine) cores() int {
	n := 1
	for _, l := range m.Levels[m.shared():] {
		n *= l.P
	}
	return n
}

// beyondRegisters returns a block's share of weights that its registers do not hold: near bytes in
// its shared memory, and beyond bytes in the cache that all blocks share. home is the farthest
// memory with any.
func (m *Machine) beyondRegisters(share float64) (near, beyond float64, home string) {
	private, inner := m.Levels[:m.shared()], 1
	rooms := make([]float64, len(private))
	for i := len(private) - 1; i >= 0; i-- {
		rooms[i] = private[i].M * float64(inner)
		inner *= private[i].P
	}
	for i, l := range private {
		home = l.Name
		if share <= rooms[i] {
			return near, 0, home
		}
		share -= rooms[i]
		if i+1 < len(private) {
			near = min(share, rooms[i+1])
		}
	}
	return near, share, m.Levels[m.shared()].Name
}

// InGroups predicts a step of w by a kernel whose blocks are divided as g. The products of a turn,
// its weights beyond registers and its exchange follow one another.
func (m *Machine) InGroups(w Work, g Group) (Step, error) {
	switch err := g.check(); {
	case err != nil:
		return Step{}, err
	case m.GPU == nil:
		return Step{}, fmt.Errorf("model: machine %q has no [gpu], so groups of blocks cannot be predicted", m.Name)
	}
	turns, live := float64(g.turns(w.Batch)), min(g.Samples, w.Batch)
	if g.Tensor {
		live = 8 * ceil(live, 8)
	}
	s := Step{Work: w, Share: w.Weights() / float64(g.Blocks)}
	near, beyond, home := m.beyondRegisters(s.Share)
	s.Home, s.Resident = home, beyond == 0
	block := m.rate(w.Bytes, g.Tensor) / float64(m.cores()) * m.GPU.Reach
	s.Compute = turns * 2 * float64(w.Rows) * float64(w.Hidden) * float64(live) / float64(g.Blocks) / block
	if private := m.Levels[:m.shared()]; near > 0 {
		s.Weights = turns * near / private[len(private)-1].B
	}
	s.Weights += turns * beyond * float64(g.Blocks*g.Groups) / m.totalRate(m.Levels[m.shared()].Name)
	each := m.Exchange(g)
	if g.Blocks == 1 {
		each = m.GPU.Alone
	}
	if w.Rows > w.Hidden {
		each += m.GPU.Gates
	}
	s.Sync = turns * each
	s.Time = s.Compute + s.Weights + s.Sync
	s.Limit = "latency"
	if s.Compute > s.Sync {
		s.Limit = "compute"
	}
	if s.Weights > max(s.Sync, s.Compute) {
		s.Limit = "weights"
	}
	return s, nil
}

// rate is the peak FLOP/s of all parts together, for products of values of so many bytes.
func (m *Machine) rate(bytes float64, tensor bool) float64 {
	switch {
	case !tensor || m.Half == 0:
		return m.FLOPS
	case bytes <= 2:
		return m.FLOPS * m.Half
	case m.GPU != nil && m.GPU.Split > 0:
		return max(m.FLOPS, m.FLOPS*m.Half/m.GPU.Split)
	}
	return m.FLOPS
}
