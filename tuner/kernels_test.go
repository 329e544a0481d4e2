package tuner_test

import (
	"math"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A teller is a CPU whose programs claim to launch these kernels.
type teller struct {
	*cpu.Device
	kernels []device.Kernel
}

type launching struct {
	device.Program
	kernels []device.Kernel
}

func (p launching) Kernels() []device.Kernel { return p.kernels }

func (d teller) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return launching{p, d.kernels}, err
}

// recordOn is the record of naive at a small point.
func recordOn(t *testing.T, d device.Device) record.Record {
	t.Helper()
	recs, err := sweep(t, &tuner.Sweep{Device: d, Settings: quick()}, t.Context(), []record.Point{small()}, specs(t, "naive"))
	if err != nil || len(recs) != 1 || recs[0].Status != record.OK {
		t.Fatalf("records are %+v", recs)
	}
	return recs[0]
}

// TestRecordKernels: a record names the kernels that its run launched.
func TestRecordKernels(t *testing.T) {
	rec := recordOn(t, open(t))
	if len(rec.Kernels) == 0 || rec.Predicted != nil {
		t.Errorf("kernels are %+v, and %+v is predicted", rec.Kernels, rec.Predicted)
	}
	launches := 0
	for _, k := range rec.Kernels {
		launches += k.Launches
		if k.Name == "" || k.Variant == nil || k.Grid != nil || k.Registers != nil || k.Spills != nil {
			t.Errorf("a kernel of a CPU is %+v", k)
		}
	}
	if launches == 0 || launches > rec.Work.Ops {
		t.Errorf("%d launches of %d operations", launches, rec.Work.Ops)
	}
}

// TestRecordPrediction: a record has the predicted time of its persistent kernels, and their registers
// and spills.
func TestRecordPrediction(t *testing.T) {
	gpu := device.Kernel{Name: "a", Variant: "mma", Grid: [3]int{16, 1, 1}, Block: [3]int{256, 1, 1}, Cluster: 16, Registers: 200, Launches: 2, Seconds: 1e-3, Error: 0.1}
	other := device.Kernel{Name: "b", Launches: 7}
	rec := recordOn(t, teller{open(t), []device.Kernel{gpu, other}})
	p := rec.Predicted
	if p == nil || math.Abs(p.Seconds-2e-3) > 1e-12 || p.Part != record.PartPersistent || p.Model == "" || p.Error == nil || *p.Error != 0.1 {
		t.Errorf("%+v is predicted", p)
	}
	k := rec.Kernels[0]
	if *k.Grid != gpu.Grid || *k.Block != gpu.Block || *k.Cluster != 16 || *k.Registers != 200 || *k.Spills != 0 || *k.Shared != 0 || k.Launches != 2 {
		t.Errorf("the kernel is %+v", k)
	}
	if k := rec.Kernels[1]; k.Grid != nil || k.Spills != nil || k.Shared != nil || k.Variant != nil {
		t.Errorf("of what is unknown, the record says %+v", k)
	}
	unsure := gpu
	unsure.Name, unsure.Error = "c", 0
	if p := recordOn(t, teller{open(t), []device.Kernel{gpu, unsure}}).Predicted; p == nil || p.Error != nil {
		t.Errorf("with an error that is not recorded, %+v is predicted", p)
	}
}
