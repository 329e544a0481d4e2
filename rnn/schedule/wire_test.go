package schedule

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"rnnbench/rnn/cell"
)

// everyOperation is a schedule with one operation of most kinds.
func everyOperation(t testing.TB, streams int) *Schedule {
	const steps, batch, hidden = 3, 2, 4
	b := NewBuilder(streams)
	m := func(name string, rows, cols int) View { return b.Matrix(name, rows, cols).All() }
	lstm, gilr := cell.Lookup("lstm"), cell.GILR
	x, row := m("x", steps*batch, 4*hidden), m("b", 1, 4*hidden)
	packed := b.Packed("r", hidden, 4*hidden).All()
	b.Prepare(Pack{Src: m("w", 4*hidden, hidden), Dst: packed, Trans: true})
	h, c := m("h", (steps+1)*batch, hidden), m("c", (steps+1)*batch, hidden)
	r := m("product", batch, 4*hidden)
	b.Do(0, Gemm{A: h.Band(0, batch), B: packed, C: r})
	b.Do(1, Cell{Cell: lstm, X: x.Band(0, batch), R: r, BX: row, BR: row, Prev: []View{h.Band(0, batch), c.Band(0, batch)}, Next: []View{h.Band(batch, batch), c.Band(batch, batch)}})
	b.Do(0, Map{Op: cell.Zero, Out: r})
	b.Do(1, SumRows{A: x, Out: row, Accumulate: true})
	index := m("index", batch, 1)
	b.Do(0, Gather{Index: index, Table: h, Out: c.Band(0, batch)})
	b.Do(1, SoftmaxLoss{Logits: r, Target: index, Loss: m("loss", batch, 1), Prob: r, Grad: true, Scale: 0.5})
	b.Do(1, CTCLoss{
		Logits: x, Labels: m("labels", batch, 3), Loss: m("loss", batch, 1), Prob: x, Scratch: b.Scratch("ctc", steps*batch, CTCScratch(3, true)).All(), Grad: true, Scale: 0.5,
	})
	stats := m("stats", batch, 2)
	b.Do(0, Normalise{X: r, Gain: row, Out: r, Stats: stats})
	b.Do(0, NormaliseBackward{DOut: x.Band(0, batch), X: r, Gain: row, Stats: stats, DX: x.Band(0, batch), Share: r})
	scan := Scan{Sequence: Sequence{Cell: gilr, Steps: steps, X: m("sx", steps*batch, len(gilr.Gates)*hidden), BX: m("sb", 1, len(gilr.Gates)*hidden)}}
	for range gilr.States {
		scan.State = append(scan.State, m("s", (steps+1)*batch, hidden))
	}
	b.Do(0, scan)
	b.Do(1, Foreign{
		Program: "rival", Request: "{}", Products: 1 << 40,
		In: []Array{{Name: "input", Shape: []int{steps, batch, 4 * hidden}, All: x}}, Out: []Array{{Name: "bias", Shape: []int{4 * hidden}, All: row}},
	})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func marshal(t testing.TB, s *Schedule) []byte {
	t.Helper()
	text, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestWire: a schedule is read as it was written. Bytes that are cut short, or have something
// behind them, are refused.
func TestWire(t *testing.T) {
	text := marshal(t, everyOperation(t, 2))
	var read Schedule
	if err := read.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	if again := marshal(t, &read); !bytes.Equal(again, text) {
		t.Error("a schedule that was read is written otherwise")
	}
	for n := range text {
		if err := read.UnmarshalBinary(text[:n]); !errors.Is(err, errWire) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
	if err := read.UnmarshalBinary(append(slices.Clone(text), 0)); !errors.Is(err, errWire) {
		t.Errorf("with a byte behind it: %v", err)
	}
}

// TestWireLacks: operations without the views that they need are refused, all of them.
func TestWireLacks(t *testing.T) {
	for _, op := range kinds() {
		switch o := op.(type) { // those with a cell cannot be written without one
		case Cell:
			o.Cell = cell.Lookup("lstm")
			op = o
		case CellBackward:
			o.Cell = cell.Lookup("lstm")
			op = o
		case Persistent:
			o.Cell = cell.Lookup("lstm")
			op = o
		case PersistentBackward:
			o.Cell = cell.Lookup("lstm")
			op = o
		case Scan:
			o.Cell, o.Steps = cell.GILR, -1
			op = o
		case ScanBackward:
			o.Cell = cell.GILR
			op = o
		case Vendor:
			o.Cell = cell.Lookup("lstm")
			op = o
		case VendorBackward:
			o.Cell = cell.Lookup("lstm")
			op = o
		case Pause:
			continue // it has nothing that could be missing
		}
		text := marshal(t, &Schedule{Streams: 1, Nodes: []Node{{Op: op}}})
		if err := new(Schedule).UnmarshalBinary(text); err == nil {
			t.Errorf("%T without anything is read", op)
		}
	}
}

// TestWireSizes: numbers beyond all reason are refused before anything is allocated for them.
func TestWireSizes(t *testing.T) {
	huge := &Schedule{Streams: 1 << 40}
	for name, s := range map[string]*Schedule{
		"streams":  huge,
		"elements": {Streams: 1, Matrices: []*Matrix{{Rows: 1 << 30, Cols: 1 << 30}}},
		"rows":     {Streams: 1, Matrices: []*Matrix{{Rows: -1, Cols: 1}}},
		"stream":   {Streams: 2, Nodes: []Node{{Op: Map{}, Stream: -3}}},
	} {
		if err := new(Schedule).UnmarshalBinary(marshal(t, s)); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

// FuzzWire: any bytes are read or refused. A schedule that was read can be counted without a panic,
// and can be written and read again.
func FuzzWire(f *testing.F) {
	f.Add(marshal(f, everyOperation(f, 1)))
	f.Add(marshal(f, everyOperation(f, 3)))
	for _, op := range kinds()[:4] {
		f.Add(marshal(f, &Schedule{Streams: 1, Nodes: []Node{{Op: op}}}))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Schedule
		if s.UnmarshalBinary(text) != nil {
			return
		}
		_, _, _, _ = s.FLOPs(), s.Traffic(), s.Memory(), s.Size()
		for op := range s.Operations() {
			_, _ = op.String(), op.Name()
		}
		var again Schedule
		if err := again.UnmarshalBinary(marshal(t, &s)); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}
