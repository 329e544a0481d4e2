package cuda_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestLateBlocks: if blocks of a layer come only after the others have given up, the run fails and says so.
// Started again with weights packed anew, it gives the answer that a run without delays gives. Groups
// meet through memory here, or at a barrier of the whole grid.
func TestLateBlocks(t *testing.T) {
	const overGrid, withBarrier = 2, 3
	d, driver := emulated(t)
	for _, resident := range []int{overGrid, withBarrier} {
		s := wave(t, cell.LSTM, 1, 96, 2, schedule.FP32)
		p, err := d.Compile(s, knob.Params{"resident": resident})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var states *schedule.Matrix
		random := rand.New(rand.NewPCG(1, 2))
		for _, m := range s.Matrices {
			switch {
			case m.Private():
				continue
			case m.Name == "h":
				states = m
			}
			v := make([]float32, m.Elements())
			for i := range v {
				v[i] = random.Float32() - 0.5
			}
			if err := p.Write(m, v); err != nil {
				t.Fatal(err)
			}
		}
		run := func() []float32 {
			err := p.Prepare()
			if err == nil {
				_, err = p.Run(1)
			}
			v := make([]float32, states.Elements())
			if err := errors.Join(err, p.Read(states, v)); err != nil {
				t.Fatal(err)
			}
			return v
		}
		want := run()
		driver.Late = 1
		if _, err := p.Run(1); !errors.Is(err, device.ErrStuck) || driver.Late != 0 {
			t.Fatalf("resident=%d, with late blocks: %v, %d launches left to delay", resident, err, driver.Late)
		}
		if got := run(); !slices.Equal(got, want) {
			t.Errorf("resident=%d: the answer after a restart is another one", resident)
		}
	}
}
