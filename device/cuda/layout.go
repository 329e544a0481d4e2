package cuda

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/device/cuda/scan"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A layout says how a schedule's matrices are stored and what else a program
// needs on the GPU, before anything is allocated.
type layout struct {
	launch.Memory
	spaces  map[int]extent // of parameters of networks, by the matrix that stands for each
	scratch []int64        // per stream, offset of what its operations need for themselves
	meeting []int64        // per persistent operation, offset of where its blocks meet
	tails   []tailing      // per stream, of factors that are split
	scans   []scan.Words   // per stream, what its scans need, one after the other
	awaited []bool         // per node, whether one of another stream waits for it
	cells   scan.Cells     // of scans
	gemm.SplitPlan
	gemm.SkinnyPlan
	persistent.Stacks
	control int64 // offset of the status word, the meetings and the words of scans, all at the end
	total   int64
}

func streams(s *schedule.Schedule) int { return min(s.Streams, launch.MaxStreams) }

func newLayout(s *schedule.Schedule, k knob.Params, p driver.Properties, networks map[driver.Network]readied) (layout, error) {
	stacks, err := persistent.NewStacks(s, elements(s), k, p)
	if err != nil {
		return layout{}, err
	}
	l := layout{
		Memory: launch.Memory{Elements: elements(s), Offsets: slices.Repeat([]int64{-1}, len(s.Matrices))}, spaces: map[int]extent{}, cells: scan.Cells{}, awaited: make([]bool, len(s.Nodes)),
		SplitPlan: gemm.NewSplitPlan(s, k, p), SkinnyPlan: gemm.NewSkinnyPlan(s, elements(s), k, p, stacks.Lower), Stacks: stacks,
	}
	for _, n := range s.Nodes {
		for _, i := range n.Wait {
			l.awaited[i] = true
		}
	}
	need := make([]int64, streams(s)) // bytes of scratch memory
	if err := l.house(s, networks, need); err != nil {
		return l, err
	}
	l.place(s)
	meeting := l.meetings(s, p)
	l.scratches(s, p, need)
	for _, n := range need {
		l.scratch = append(l.scratch, l.reserve(n))
	}
	l.control = l.total
	l.StatusOffset = l.reserve(4)
	for i := range s.Nodes {
		if st := l.Stacks.At[i]; st != nil {
			st.Meeting = l.reserve(st.Bytes())
		}
	}
	for _, bytes := range meeting {
		l.meeting = append(l.meeting, l.reserve(bytes))
	}
	return l, l.words(s, k, p)
}

// reserve is where so many bytes more are.
func (l *layout) reserve(bytes int64) int64 {
	at := l.total
	l.total += (bytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
	return at
}

// place gives matrices that have none their places.
func (l *layout) place(s *schedule.Schedule) {
	packed := map[int]int64{} // bytes of weights that may be packed so, by the matrix's number
	for op := range s.Operations() {
		if op, ok := op.(schedule.Persistent); ok {
			for _, r := range op.R {
				packed[r.M.ID] = persistent.FragmentBytes(op.Hidden(), l.Elements[r.M.ID])
			}
		}
	}
	for id := range l.Lower {
		m := s.Matrices[id]
		packed[id] = int64(m.Cols/m.Rows) * persistent.FragmentBytes(m.Rows, l.Elements[id])
		delete(l.Kept, id)
	}
	for i, m := range s.Matrices {
		if l.Offsets[i] >= 0 {
			continue
		}
		bytes := max(int64(m.Elements())*int64(l.Elements[i].Bytes()), packed[i])
		if n := l.Factors[i]; n != nil {
			bytes = 16 * int64(n.Quads())
		} else if f := l.Kept[i]; f == gemm.SplitLibrary {
			bytes, _ = gemm.SplitBytes(m.Cols, m.Rows)
		} else if f == gemm.SplitKernel {
			bytes, _ = gemm.PackedBytes(m.Cols, m.Rows)
		}
		l.Offsets[i] = l.reserve(bytes)
		l.reserve(1) // a gap: what runs over the end of a matrix does not reach the next
	}
}

// meetings are the bytes of where the blocks of persistent operations meet.
func (l *layout) meetings(s *schedule.Schedule, p driver.Properties) (bytes []int64) {
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Persistent:
			if !l.Stacks.Own[op.R[0].M.ID] {
				bytes = append(bytes, launch.Alignment+persistent.ExchangeBytes(op.Hidden(), op.Batch()))
			}
		case schedule.PersistentBackward:
			bytes = append(bytes, launch.Alignment+persistent.BackwardExchangeBytes(op.Hidden(), op.Batch(), p))
		}
	}
	return bytes
}

// scratches adds to what each stream needs what products and sums of rows do.
func (l *layout) scratches(s *schedule.Schedule, p driver.Properties, need []int64) {
	factors, sums := make([]map[schedule.View]bool, len(need)), make([]int64, len(need))
	for i := range factors {
		factors[i] = map[schedule.View]bool{}
	}
	for stream, op := range everything(s) {
		switch op := op.(type) {
		case schedule.Gemm:
			if l.Factors[op.B.M.ID] == nil && l.IsSplit(op) {
				need[stream] = max(need[stream], l.ScratchBytes(op))
				if l.MethodOf(op) == gemm.SplitKernel {
					factors[stream][op.A], factors[stream][op.B] = true, true
				}
			}
		case schedule.SumRows:
			sums[stream] = max(sums[stream], 4*int64(pointwise.SumParts(op, p))*int64(op.A.Cols))
			need[stream] = max(need[stream], sums[stream])
		}
	}
	for i, n := range s.Nodes {
		_, bytes := l.chain(s, i)
		need[n.Stream%launch.MaxStreams] = max(need[n.Stream%launch.MaxStreams], bytes)
	}
	for i, views := range factors {
		t := tailing{slots: min(len(views), mostSlots)}
		if t.slots > 0 {
			t.at, t.sums = l.reserve(int64(t.slots)*slotBytes), l.reserve(sums[i])
		}
		l.tails = append(l.tails, t)
	}
}

// words gives what scans show each other its places.
func (l *layout) words(s *schedule.Schedule, k knob.Params, p driver.Properties) error {
	words := make([]scan.Words, streams(s))
	for stream, op := range everything(s) {
		if err := l.cells.Reserve(op, &l.Memory, k, p, &words[stream]); err != nil {
			return err
		}
	}
	for _, w := range words {
		l.scans = append(l.scans, scan.Words{Tickets: l.reserve(w.Tickets), Sums: l.reserve(w.Sums), Starts: l.reserve(w.Starts)})
	}
	return nil
}

// everything yields the operations of s, its preparation first, each with the
// stream of the GPU that it runs on.
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

// elements says how each matrix is stored: in 16 bits where the precision says
// so and a product multiplies it, else in single precision.
func elements(s *schedule.Schedule) []driver.Element {
	out := make([]driver.Element, len(s.Matrices))
	var narrow driver.Element
	switch s.Precision {
	case schedule.BF16:
		narrow = driver.Brain
	case schedule.FP16:
		narrow = driver.Half
	default:
		return out
	}
	for op := range s.Operations() {
		var multiplied []schedule.View
		if st, ok := stackOf(op); ok {
			multiplied = st.views()
		}
		switch op := op.(type) {
		case schedule.Gemm:
			multiplied = []schedule.View{op.A, op.B}
		case schedule.Pack:
			multiplied = []schedule.View{op.Dst}
		case schedule.Persistent:
			multiplied = append(multiplied, op.State[op.Cell.Through])
			multiplied = append(multiplied, op.R...)
		case schedule.PersistentBackward:
			multiplied = []schedule.View{op.Recurrent(0), op.R}
		}
		for _, v := range multiplied {
			out[v.M.ID] = narrow
		}
	}
	return out
}

// bytes is what the program and the products of its streams take.
func (l *layout) bytes(s *schedule.Schedule, p driver.Properties) int64 {
	return l.total + int64(streams(s))*p.Workspace
}
