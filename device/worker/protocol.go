// Package worker runs a device in another process.
//
// A GPU can hang, and after an illegal access its process cannot use the GPU any
// more. The device therefore lives in a worker that can be killed and restarted.
// Device is the parent's end: a device.Device whose calls travel over the worker's
// standard input and output. Serve is the worker's end. The worker times samples,
// so that no measurement includes the pipe.
package worker

import (
	"errors"
	"strings"
	"unsafe"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// greeting is the first line of a worker. What a process writes instead is why
// it is none.
const greeting = "rnnbench worker 2\n"

// The calls.
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
)

// A request is one call. Size bytes of matrix follow it, or are in the window.
type request struct {
	Call     int
	Name     string // open: the device; provoke: the mishap
	Schedule int    // knobs, memory, compile, precompile, explain, predict: what the call is about, as the parent numbers them
	Text     []byte // that schedule, where the worker does not know it
	Forget   []int  // schedules that no call is about any more
	Knobs    knob.Params
	Program  int // as answered by compile
	Matrix   int
	Runs     int
	Each     int // calls: values that each writes
	Out      int // calls: the matrix that each reads
	Read     int // calls: values that each reads
	Fills    []fill
	Size     int
	Window   bool // open: there is one; write, read, calls, feed: the matrix is in it
}

// A fill is a matrix that is fed, so many bytes of it. The bytes of all of them are one after another.
type fill struct{ Matrix, Size int }

// A response answers it. Size bytes of matrix follow it, or are in the window.
type response struct {
	Info      device.Info
	Knobs     []knob.Knob // open: the device's vocabulary
	Memory    int64
	Program   int
	Kernels   []device.Kernel // compile: of that program
	Fed       bool            // compile: it is a device.Fed
	Sample    device.Sample
	Limits    device.Limits
	Findings  []device.Finding
	Hierarchy device.Hierarchy
	Explained device.Explanation
	Predicted device.Prediction
	Power     device.Power
	Called    device.Called
	Size      int
	Window    bool // open: both have it

	Error string // "" for none
	Cause int    // index in causes, plus 1; 0: none of them
}

// causes are the errors that callers distinguish.
func causes() []error {
	causes := []error{device.ErrHang, device.ErrFault, device.ErrLost, device.ErrMemory, schedule.ErrUnsupported}
	return append(causes, schedule.Declines()...) // the last that an error is counts
}

// A remoteError is an error of the worker's.
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

// bytesOf is the memory of v: both ends are on one machine.
func bytesOf(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// A Provoker is a device that breaks when asked, so that what guards against it
// can be tested.
type Provoker interface {
	Provoke(mishap string) error
}

// The mishaps.
const (
	Spin  = "spin"  // never come back
	Fault = "fault" // access memory that is not there
)
