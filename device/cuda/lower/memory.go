package lower

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/schedule"
)

// A layout says where a program has its matrices, scratch memory and the words that blocks share.
// It is made before anything is allocated.
type layout struct {
	launch.Memory
	spaces        map[int]extent // of parameters of networks, by the matrix that stands for each
	scratch       []int64        // per stream, offset of its operations' scratch memory
	barriers      map[int]int64  // barrier state of each persistent operation, by its index among all operations
	stackBarriers map[int]int64  // barrier state of each stack, by its first node
	absmax        []absmaxRoom   // per stream, for factors that are split
	largest       map[int]int64  // where updates keep the largest values of weights, by matrix
	noted         map[int]noted  // where scatters note the rows of tables, by matrix
	scans         []scan.Words   // per stream, the words that its scans share, one scan at a time
	cells         scan.Cells     // of scans
	control       int64          // offset of the status word, the barriers and the words of scans, all at the end
	total         int64
}

// Streams is the number of the GPU's streams that s uses.
func Streams(s *schedule.Schedule) int { return min(s.Streams, launch.MaxStreams) }

// placeMatrices lays out the memory of a program.
func placeMatrices(p Lowering) (Lowering, error) {
	s := p.schedule
	p.layout = layout{
		Memory: launch.Memory{Elements: p.elements, Offsets: slices.Repeat([]int64{-1}, len(s.Matrices))},
		spaces: map[int]extent{}, cells: scan.Cells{}, stackBarriers: map[int]int64{}, barriers: map[int]int64{},
	}
	need := make([]int64, Streams(s)) // bytes of scratch memory
	if err := p.placeNetworks(s, p.networks, need); err != nil {
		return p, err
	}
	p.place(s)
	p.placeLargest(s, p.Kept)
	p.placeTables(s)
	p.scratches(s, need)
	for _, n := range need {
		p.scratch = append(p.scratch, p.reserve(n))
	}
	p.control = p.total
	p.StatusOffset = p.reserve(4)
	for i := range s.Nodes {
		if st := p.Stacks.At[i]; st != nil {
			p.stackBarriers[i] = p.reserve(st.Bytes())
		}
	}
	p.placeBarriers(s)
	return p, p.words(s)
}

// reserve appends so many bytes and returns where they are.
func (l *layout) reserve(bytes int64) int64 {
	at := l.total
	l.total += (bytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
	return at
}

// place places the matrices that networks have not placed.
func (p *Lowering) place(s *schedule.Schedule) {
	packed := map[int]int64{} // bytes of weights that may be packed as fragments, by matrix
	for op := range s.Operations() {
		if op, ok := op.(schedule.Persistent); ok {
			for _, r := range op.R {
				packed[r.M.ID] = kernels.FragmentBytes(op.Hidden(), p.Elements[r.M.ID])
			}
		}
	}
	for id := range p.Lower {
		m := s.Matrices[id]
		packed[id] = int64(m.Cols/m.Rows) * kernels.FragmentBytes(m.Rows, p.Elements[id])
	}
	for i, m := range s.Matrices {
		if p.Offsets[i] >= 0 {
			continue
		}
		bytes := max(int64(m.Elements())*int64(p.Elements[i].Bytes()), packed[i])
		if n := p.Factors[i]; n != nil {
			bytes = 16 * int64(n.Quads())
		} else if f := p.Kept[i]; f == gemm.SplitLibrary {
			bytes, _ = gemm.SplitBytes(m.Cols, m.Rows)
		} else if f == gemm.SplitKernel {
			bytes, _ = gemm.PackedBytes(m.Cols, m.Rows)
		}
		p.Offsets[i] = p.reserve(bytes)
		p.reserve(1) // a gap: an overrun of a matrix does not reach the next
	}
}

// placeBarriers places the barrier state of persistent operations.
func (p *Lowering) placeBarriers(s *schedule.Schedule) {
	i := 0
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Persistent:
			if !p.Stacks.Own[op.R[0].M.ID] {
				p.barriers[i] = p.reserve(launch.Alignment + persistent.ExchangeBytes(op.Hidden(), op.Batch()) + p.layers[i].config.Memory())
			}
		case schedule.PersistentBackward:
			p.barriers[i] = p.reserve(launch.Alignment + persistent.BackwardExchangeBytes(op.Hidden(), op.Batch(), p.properties) + p.layers[i].config.Memory())
		}
		i++
	}
}

// scratches adds the scratch memory of products and sums of rows to each stream's need.
func (p *Lowering) scratches(s *schedule.Schedule, need []int64) {
	factors, sums := make([]map[schedule.View]bool, len(need)), make([]int64, len(need))
	for i := range factors {
		factors[i] = map[schedule.View]bool{}
	}
	for stream, op := range everything(s) {
		switch op := op.(type) {
		case schedule.Gemm:
			if p.Factors[op.B.M.ID] == nil && p.IsSplit(op) {
				need[stream] = max(need[stream], p.ScratchBytes(op))
				if p.MethodOf(op) == gemm.SplitKernel {
					factors[stream][op.A], factors[stream][op.B] = true, true
				}
			}
		case schedule.SumRows:
			sums[stream] = max(sums[stream], 4*int64(pointwise.SumParts(op, p.properties))*int64(op.A.Cols))
			need[stream] = max(need[stream], sums[stream])
		}
	}
	for i, n := range s.Nodes {
		_, bytes := p.chain(i)
		need[n.Stream%launch.MaxStreams] = max(need[n.Stream%launch.MaxStreams], bytes)
	}
	for i, views := range factors {
		t := absmaxRoom{slots: min(len(views), absmaxSlots)}
		if t.slots > 0 {
			t.at, t.sums = p.reserve(int64(t.slots)*absmaxSlotBytes), p.reserve(sums[i])
		}
		p.absmax = append(p.absmax, t)
	}
}

// words places the words through which blocks of scans communicate.
func (p *Lowering) words(s *schedule.Schedule) error {
	words := make([]scan.Words, Streams(s))
	for stream, op := range everything(s) {
		if err := p.cells.Reserve(op, &p.Memory, p.Knobs, p.properties, &words[stream]); err != nil {
			return err
		}
	}
	for _, w := range words {
		p.scans = append(p.scans, scan.Words{Tickets: p.reserve(w.Tickets), Aggregates: p.reserve(w.Aggregates), Prefixes: p.reserve(w.Prefixes), Slack: p.reserve(w.Slack)})
	}
	return nil
}

// everything yields the operations of s, the preparation first, each with the GPU's stream that it
// runs on.
func everything(s *schedule.Schedule) func(yield func(int, schedule.Op) bool) {
	return func(yield func(int, schedule.Op) bool) {
		for _, op := range s.Prepare {
			if !yield(0, op) {
				return
			}
		}
		for _, n := range s.Nodes {
			if !yield(n.Stream%launch.MaxStreams, n.Op) {
				return
			}
		}
	}
}

// Size returns the size of the program's memory in bytes.
func (p *Lowering) Size() int64 { return p.total }

// Cleared lists the parts of the memory at base that must be zero before the first run.
func (p *Lowering) Cleared(base driver.Pointer) (parts []driver.Extent) {
	for i, m := range p.schedule.Matrices {
		parts = append(parts, driver.Extent{At: base + driver.Pointer(p.Offsets[i]), Bytes: int64(m.Elements() * p.elements[i].Bytes())})
	}
	for _, s := range p.spaces {
		parts = append(parts, driver.Extent{At: base + driver.Pointer(s.at), Bytes: s.bytes})
	}
	return parts
}

// Shared returns the part of the memory at base that holds the words that kernels share.
func (p *Lowering) Shared(base driver.Pointer) driver.Extent {
	return driver.Extent{At: base + driver.Pointer(p.control), Bytes: p.total - p.control}
}

// Bytes returns the size of the program's memory and of the library's workspaces, one per stream.
func (p *Lowering) Bytes() int64 {
	return p.total + int64(Streams(p.schedule))*p.properties.Workspace
}
