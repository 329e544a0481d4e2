// Package record defines the records of measurements, and reads and writes the folders of runs.
//
// A record is one technique at one point: what was asked for, what happened and every raw sample. A
// run is a folder with a manifest and an append-only file of records. Tables and figures are functions
// of records alone, so this package knows no device and no technique.
package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/rnn/axis"
)

// Schema names the version of Record that is written. Readers ignore unknown keys. A change of meaning
// increments the number.
const Schema = "rnnbench.record/2"

// A Point is one problem, given by its values on the axes of a sweep.
type Point = axis.Point

// A Status says how measuring a point ended.
type Status string

const (
	OK        Status = "ok"
	Skipped   Status = "skipped"   // declined before it ran
	Failed    Status = "failed"    // failed while it ran
	Incorrect Status = "incorrect" // ran, and its answer is wrong
	Timeout   Status = "timeout"

	// Impossible says that the times cannot be true: no machine of its kind is as fast.
	Impossible Status = "impossible"

	// NotConverged says that the iterations of a technique did not lead to the answer.
	NotConverged Status = "not_converged"
)

// Broken reports whether measuring was tried and did not succeed.
func (s Status) Broken() bool { return s == Failed || s == Timeout || s.Wrong() }

// Wrong reports whether the answer or the times of a technique are wrong.
func (s Status) Wrong() bool { return s == Incorrect || s == Impossible }

// Passing reports whether r ended for a reason that has nothing to do with its technique, so that
// another try is worthwhile.
func (r *Record) Passing() bool {
	return r.ReasonCode != nil && (*r.ReasonCode == ReasonInterrupted || *r.ReasonCode == ReasonLost)
}

// Reason codes of records that are not ok.
const (
	ReasonMemory      = "mem_estimate"
	ReasonOOM         = "oom"
	ReasonBackstop    = "oom_backstop"
	ReasonShape       = "unsupported_shape" // early records have it in place of the codes below
	ReasonCell        = "unsupported_cell"
	ReasonStreams     = "unsupported_streams"
	ReasonInput       = "unsupported_input"   // such as one-hot
	ReasonHistory     = "unsupported_history" // steps kept of the previous minibatch
	ReasonHeads       = "unsupported_heads"
	ReasonProjection  = "unsupported_projection"
	ReasonSkip        = "unsupported_skip"      // shortcuts past layers
	ReasonLookahead   = "unsupported_lookahead" // row convolutions
	ReasonNorm        = "unsupported_norm"
	ReasonCalls       = "unsupported_calls" // calls one by one, with states kept on the device
	ReasonDirection   = "unsupported_direction"
	ReasonLengths     = "unsupported_lengths"
	ReasonResets      = "unsupported_resets"
	ReasonLibrary     = "unsupported_library" // a vendor's library declines
	ReasonPrecision   = "unsupported_precision"
	ReasonDevice      = "unsupported_device"
	ReasonResource    = "resource_limit"
	ReasonKnob        = "unsupported_knob" // a setting that this device does not offer at this point
	ReasonBound       = "lower_bound"      // a tuner found a faster candidate than its bound allows
	ReasonUnlikely    = "unlikely"         // a tuner left it out, because it was slower at near points
	ReasonHang        = "worker_hang"
	ReasonLost        = "worker_lost" // the worker was killed from outside, or did not start again
	ReasonCUDA        = "cuda_error"
	ReasonRival       = "rival_failed" // another program crashed or broke the protocol
	ReasonMismatch    = "numeric_mismatch"
	ReasonUnconverged = "not_converged" // the iterations of a technique have not led to the answer
	ReasonPeak        = "above_peak"    // more arithmetic a second than the machine's peak allows
	ReasonBytes       = "below_bytes"   // the data alone take longer to come from memory
	ReasonGrowth      = "no_growth"     // more runs take no more time
	ReasonInterrupted = "interrupted"
	ReasonPanic       = "panic"
	ReasonError       = "error"
)

// Warnings of records that are ok.
const (
	WarnNoisy     = "noisy"      // the interval did not reach the target
	WarnFewRounds = "few_rounds" // too few samples for an interval
	WarnBimodal   = "bimodal"
	WarnDrift     = "drift" // later samples differ from earlier ones
	WarnGC        = "gc_in_sample"
	WarnThrottled = "throttled"
	WarnEnergy    = "energy_disputed" // counter and polled power differ by more than a tenth
	WarnDisturbed = "disturbed"       // other programs or a hypervisor took processors
	WarnQuota     = "quota"           // the control group's quota stopped the program

	WarnInterpreted = "interpreted" // the device has no compiled code for the cell
	WarnRestarted   = "restarted"   // blocks of a kernel gave up waiting for each other, and the runs were started again

	WarnUnverified = "unverified"      // the answer was not checked
	WarnPart       = "checked_in_part" // fewer steps were compared than timed
)

// A Record is one technique at one point. Times are in seconds. Every key is always present, and null
// where it is unknown.
type Record struct {
	Schema string    `json:"schema"`
	Run    string    `json:"run"`
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`

	Point  Point  `json:"point"`
	Impl   Impl   `json:"impl"`
	Device string `json:"device"` // device.Info.Key
	Mode   Mode   `json:"mode"`

	Status     Status   `json:"status"`
	ReasonCode *string  `json:"reason_code"`
	Reason     *string  `json:"reason"`
	Warnings   []string `json:"warnings"`

	Work    Work     `json:"work"`
	Samples *Samples `json:"samples"`
	Stats   *Stats   `json:"stats"`
	Rate    *Rate    `json:"rate"`
	Verify  *Verify  `json:"verify"`
	Cost    Cost     `json:"cost"`

	// Since version 2; see kernels.go.
	Kernels   []Kernel   `json:"kernels"` // null: unknown
	Predicted *Predicted `json:"predicted"`
	Floor     *Floor     `json:"floor"`
	Node      *Node      `json:"node"`
	Energy    *Energy    `json:"energy"`
	Rival     *Rival     `json:"rival"`
	Lengths   *Lengths   `json:"lengths"`
	Training  *Training  `json:"training"` // null: only the pass was timed
	Latency   *Latency   `json:"latency"`  // null: runs were timed, not calls

	Disturbance *Disturbance `json:"disturbance"` // null: unknown, or a record from before this key

	// Launch is how many seconds a launch by the host took just before the samples. Techniques that took turns
	// share it. null: there is no GPU, it is unknown, or a record from before this key.
	Launch *float64 `json:"launch_s"`

	// Equations is the text of the file that defines the point's cell; null: the cell is built in.
	Equations *string `json:"equations"`
}

// Impl is a technique with its settings.
type Impl struct {
	Name string `json:"name"`
	// Label is for tables and legends, such as a stage of Appleyard's ladder. By default it is the
	// name with the requested knobs.
	Label   string         `json:"label"`
	Knobs   map[string]int `json:"knobs"`   // complete, defaults included
	Streams int            `json:"streams"` // streams in use
	Choice  *Choice        `json:"choice"`  // null: the user named it
}

// Choice says how a technique was chosen that the user left open.
type Choice struct {
	By      string  `json:"by"`      // what the user named instead: "auto"
	Match   string  `json:"match"`   // the ground of the choice: "exact", "nearest", "predicted", "raced" or "default"
	Octaves float64 `json:"octaves"` // distance of the tuned point
	Why     string  `json:"why"`
	Impl    string  `json:"impl"` // what was chosen, in the syntax of --impl without defaults; "" in early records

	Expected *Expected `json:"expected"` // null: no cost model chose

	Objective string `json:"objective"` // what was to be minimised: "" for time, or OfEnergy
}

// Expected is what a device's cost model predicted for a choice.
type Expected struct {
	Seconds  float64 `json:"seconds"`   // of a run
	Error    float64 `json:"error"`     // of the model, relative
	RunnerUp string  `json:"runner_up"` // the best alternative, in the syntax of --impl; "": there was none
	Margin   float64 `json:"margin"`    // how much slower RunnerUp is predicted to be, or was in a race, as a share
}

// Mode is how the point was measured.
type Mode struct {
	Order string `json:"order"` // "interleaved", "random" or "sequential"
	Cache string `json:"cache"` // "hot" or "cold"
	Graph bool   `json:"graph"`
	Timer string `json:"timer"` // "wall" or "event"
	Data  string `json:"data"`  // distribution of the inputs
	Seed  uint64 `json:"seed"`

	// Objective is what the tune that measured the point minimised: "" for time, or OfEnergy.
	Objective string `json:"objective"`
}

// OfEnergy is the objective of a tune that minimises the joules of a run.
const OfEnergy = "energy"

// Work counts the work of one run.
type Work struct {
	Model    string `json:"flops_model"`    // what Flops counts: "products"
	Flops    int64  `json:"flops"`          // of the problem, the same for every technique
	Executed int64  `json:"flops_executed"` // of the schedule, point-wise operations included
	Bytes    int64  `json:"bytes"`          // that the schedule's operations read and write
	Memory   int64  `json:"mem_bytes"`      // allocated
	Ops      int    `json:"ops"`            // operations in the schedule
	Waits    int    `json:"waits"`          // between streams
}

// Samples are times as measured, each divided by its number of runs.
type Samples struct {
	Iters  []int     `json:"iters"` // runs per sample
	Wall   []float64 `json:"wall_s"`
	Device []float64 `json:"gpu_s"`    // empty where the device has no clock
	Clock  []float64 `json:"clock_hz"` // of the GPU's multiprocessors at the end of each sample; empty: unknown
}

// Stats summarise the samples of the clock that Mode.Timer names.
type Stats struct {
	N      int      `json:"n"`
	Min    float64  `json:"min"`
	Q1     float64  `json:"q1"`
	Median float64  `json:"median"`
	Q3     float64  `json:"q3"`
	Max    float64  `json:"max"`
	Mean   float64  `json:"mean"`
	Stdev  *float64 `json:"stdev"`
	Lo     *float64 `json:"ci_lo"` // distribution-free interval of the median; null: too few samples
	Hi     *float64 `json:"ci_hi"`
	Level  float64  `json:"ci_level"`
	Stop   string   `json:"stop"` // "target_ci", "noise_stable", "max_rounds", "clear", "timeout", "budget", "interrupted" or "outraced"
}

// Rate relates the work to the median time.
type Rate struct {
	Flops   float64  `json:"flops_per_s"`
	Bytes   float64  `json:"bytes_per_s"`
	Peak    *float64 `json:"peak_flops_per_s"` // of the device, as measured
	Percent *float64 `json:"pct_peak_flops"`
	Source  string   `json:"peak_source"` // PeakMultiplyAdds, PeakProducts or ""

	copies float64 // bytes per second that the device copies, from the manifest; 0: unknown
}

// Verify is the outcome of the check against the float64 reference.
type Verify struct {
	Reference string  `json:"ref"`
	Tensor    string  `json:"tensor"` // the one with the largest error
	MaxAbs    float64 `json:"max_abs"`
	Error     float64 `json:"error"` // largest absolute error over the largest value of its tensor
	Tolerance float64 `json:"tol"`
	Sequences int     `json:"sequences"` // distinct ones among the batch
	Steps     int     `json:"steps"`     // compared steps of the timed run, or of the shorter run
	OK        bool    `json:"ok"`

	// States is the compared steps of the timed run where the shorter run was compared for its
	// gradients. Shorter is the steps of a shorter run that was compared as well. 0: none, or an
	// early record.
	States  int `json:"states_steps"`
	Shorter int `json:"shorter_steps"`

	// Method is VerifyWhole or the like; "" in early records.
	Method string  `json:"method"`
	Share  float64 `json:"share"` // share of the states' values that was compared; 0: unknown
	Peer   string  `json:"peer"`  // label of the technique whose answer it was compared with

	Partial   []string `json:"partial"`    // tensors that the technique shows only after the last step, or not at all
	UnitError float64  `json:"unit_error"` // error of point-wise functions that the technique states; 0: only rounding

	// Kinks counts the kinks of a training cell with ReLU; nil: another cell or pass, a peer that
	// agrees, or an early record.
	Kinks *Kinks `json:"kinks"`

	// Iterations is how many a technique ran that repeats itself, and Residual the largest difference of
	// the states of the last two, over the largest state; 0: the technique does not repeat itself, or an
	// early record.
	Iterations int     `json:"iterations"`
	Residual   float64 `json:"residual"`
}

// How an answer was checked.
const (
	VerifyWhole    = "whole"    // all steps of all distinct sequences, by the reference
	VerifyStepwise = "stepwise" // each step by the reference from the run's own states before it, some units per step
	VerifyPeer     = "peer"     // the whole run, by the run of a technique that was checked itself
	VerifyShorter  = "shorter"  // a run of fewer steps, by the reference
)

// Cost says how long each phase of measuring took, in seconds.
type Cost struct {
	Setup   float64 `json:"setup_s"`
	Verify  float64 `json:"verify_s"`
	Warmup  float64 `json:"warmup_s"`
	Measure float64 `json:"measure_s"`
}

// Key identifies what a record measured. The same key twice in a run means that the point was measured
// twice. Knobs with value 0 are left out, so a new knob whose 0 changes nothing leaves old keys valid.
func (r *Record) Key() string {
	names := make([]string, 0, len(r.Impl.Knobs))
	for n, v := range r.Impl.Knobs {
		if v != 0 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%+v|%s", r.Device, r.Point, r.Impl.Name)
	if l := r.Point.Lengths; l.Short() != l.String() { // the point cuts it
		b.WriteString("|" + l.String())
	}
	if c := r.Impl.Choice; c != nil { // the same technique may also run under its own name
		b.WriteString("|" + c.By)
	}
	for _, n := range names {
		b.WriteString(":" + n + "=" + strconv.Itoa(r.Impl.Knobs[n]))
	}
	if t := r.Training; t != nil {
		fmt.Fprintf(&b, "|%s|%s|%d", t.Data, t.Optimizer, t.Iterations)
		if t.Replicas > 0 {
			fmt.Fprintf(&b, "|%d replicas", t.Replicas)
		}
		if t.Glorot {
			b.WriteString("|glorot")
		}
		if t.Repeat > 0 {
			fmt.Fprintf(&b, "|repeat %d", t.Repeat)
		}
	}
	return b.String()
}

// Seconds is the median time of one run; 0: not measured.
func (r *Record) Seconds() float64 {
	if r.Status != OK || r.Stats == nil {
		return 0
	}
	return r.Stats.Median
}

// FLOPS is the rate of the problem's own products in FLOP/s; 0: not measured.
func (r *Record) FLOPS() float64 {
	if s := r.Seconds(); s > 0 {
		return float64(r.Work.Flops) / s
	}
	return 0
}
