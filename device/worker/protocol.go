// Package worker runs a device in another process.
//
// A GPU can hang, and after an illegal access its process cannot use the GPU any more. The device
// therefore lives in a worker process that can be killed and restarted. Device is the parent's end:
// a device.Device whose calls travel over the worker's standard input and output. Serve is the
// worker's end. The worker times samples, so no measurement includes the pipe.
package worker

import (
	"errors"
	"strings"
	"unsafe"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// greeting is the first line that a worker writes. If a process writes anything else, that text is
// reported as the reason why it did not start.
const greeting = "rnnbench worker 2\n"

// The kinds of calls.
const (
	callOpen = iota
	callInfo
	callKnobs
	callMemory
	callCompile
	callWrite
	callRead
	callPrepare
	callRun
	callFree
	callLimits
	callInspect
	callEvict
	callProvoke
	callHierarchy
	callPrecompile
	callExplain
	callPredict
	callPower
	callCalls
	callFeed
	callStart
	callWait
	callLaunchTime
)

// A request is one call. Size bytes of matrix data follow it or lie in the window.
type request struct {
	Call     int
	Name     string // open: the device; provoke: the mishap
	Schedule int    // knobs, memory, compile, precompile, explain, predict: the schedule's number, which the parent assigns
	Text     []byte // the schedule, if the worker does not have it yet
	Forget   []int  // schedules that the worker may drop
	Knobs    knob.Params
	Program  int // from the answer to compile
	Matrix   int
	Runs     int
	Each     int // calls: values that each call writes
	Out      int // calls: the matrix that each call reads
	Read     int // calls: values that each call reads
	Fills    []fill
	Size     int
	Window   bool // open: the parent has a window; write, read, calls, feed: the data is in it
}

// A fill is a matrix to feed and the bytes of its values. The values of all fills lie one after
// another.
type fill struct{ Matrix, Size int }

// A response answers a request. Size bytes of matrix data follow it or lie in the window.
type response struct {
	Info      device.Info
	Knobs     []knob.Knob // open: the device's vocabulary
	Memory    int64
	Program   int
	Kernels   []device.Kernel // compile: the program's kernels
	Fed       bool            // compile: the program is a device.Fed
	Sample    device.Sample
	Limits    device.Limits
	Findings  []device.Finding
	Hierarchy device.Hierarchy
	Explained device.Explanation
	Predicted device.Prediction
	Power     device.Power
	Launch    float64 // seconds of a launch
	Called    device.Called
	Size      int
	Window    bool // open: the worker has mapped the window

	Error string // "" for none
	Cause int    // 1 + index in causes; 0: none of them
}

// causes returns the errors that callers distinguish.
func causes() []error {
	causes := []error{device.ErrHang, device.ErrFault, device.ErrLost, device.ErrStuck, device.ErrMemory, schedule.ErrUnsupported}
	return append(causes, schedule.Declines()...) // the last match counts
}

// A remoteError is an error that the worker reported.
type remoteError struct {
	text  string
	cause error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.cause }

func (r *response) fail(err error) {
	r.Error = err.Error()
	if len(r.Error) > errorBytes {
		r.Error = strings.ToValidUTF8(r.Error[:errorBytes], "") + " …"
	}
	for i, c := range causes() {
		if errors.Is(err, c) {
			r.Cause = i + 1
		}
	}
}

func (r *response) err() error {
	if r.Error == "" {
		return nil
	}
	e := &remoteError{text: r.Error}
	if all := causes(); r.Cause > 0 && r.Cause <= len(all) {
		e.cause = all[r.Cause-1]
	}
	return e
}

// bytesOf returns the memory of v. Both ends run on one machine, so the byte order is the same.
func bytesOf(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// A Provoker is a device that breaks on request, to test how callers cope.
type Provoker interface {
	Provoke(mishap string) error
}

// The mishaps.
const (
	Spin  = "spin"  // never return
	Fault = "fault" // access memory that is not mapped
)
