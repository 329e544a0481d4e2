package rival

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/rnn/schedule"
	"rnnbench/rnn/torch"
)

var _ device.Caller = (*program)(nil)

// mostCalls is how many calls a request has at most, since their times come in one line. Untimed calls
// come before them for as long as settling: the process was stopped, and its caches hold other data. After
// 8 calls, the next 20 of a small layer still took 12 % longer than later ones.
const (
	mostCalls = 1 << 11
	settling  = 2 * time.Millisecond
)

// Call implements device.Caller. The rival makes the calls and times each: no time includes the pipe.
// Where outputs stay in the rival's memory, reading them is no part of a call.
func (p *program) Call(c device.Calls) (all device.Called, err error) {
	if err := c.Check(); err != nil {
		return all, err
	}
	in := p.op.In[0]
	if p.work.Point.Calls == 0 || in.All.M != c.In || c.Each != c.In.Elements() {
		return all, errors.New("rival: its plan is not one of calls that write its whole input")
	}
	if p.written { // states before the first call
		return all, errors.New("rival: values were written that no run has read")
	}
	fresh := len(p.given) != len(c.Inputs) || &p.given[0] != &c.Inputs[0]
	for left := c.N; left > 0; left -= mostCalls {
		var list []torch.Array
		if fresh {
			list = []torch.Array{{Name: in.Name, Shape: slices.Concat([]int{len(c.Inputs) / c.Each}, in.Shape), Values: c.Inputs}}
		}
		some, err := p.call(min(left, mostCalls), settling, list)
		if err != nil {
			return all, err
		}
		p.given, fresh = c.Inputs, false
		all.Append(device.Called{Wall: some, Run: some})
	}
	return all, nil
}

// callOnce hands over what was written since, and makes n calls.
func (p *program) callOnce(n int) (device.Sample, error) {
	var list []torch.Array
	for _, a := range p.op.In {
		switch v := p.values[a.All.M]; {
		case v == nil:
		case a.Name == p.op.In[0].Name:
			list = append(list, torch.Array{Name: a.Name, Shape: slices.Concat([]int{1}, a.Shape), Values: v})
		default:
			list = append(list, torch.Array{Name: a.Name, Shape: a.Shape, Values: v})
		}
	}
	if len(list) == 0 || list[0].Name != p.op.In[0].Name {
		return device.Sample{}, errors.New("rival: no input was written for a call")
	}
	times, err := p.call(1, 0, list)
	if err != nil {
		return device.Sample{}, err
	}
	p.written, p.given = false, nil
	first := device.Sample{Wall: times[0]}
	if n == 1 {
		return first, nil
	}
	rest, err := p.Run(n - 1)
	rest.Wall += first.Wall
	return rest, err
}

// call has the rival make n calls, which take new inputs from list, if there are any. It returns the time of each.
func (p *program) call(n int, settle time.Duration, list []torch.Array) ([]time.Duration, error) {
	if !p.prepared {
		return nil, errors.New("rival: it was not prepared")
	}
	q := request{Call: n, SettleS: settle.Seconds()}
	limit := settle + (*Rival)(p.host).patience(time.Duration(min(float64(n)*float64(p.perRun), float64(p.host.o.Timeout))))
	if list != nil {
		q.Data = p.host.file("call")
		defer os.Remove(q.Data)
		if err := save(q.Data, list); err != nil {
			return nil, err
		}
		for _, a := range list {
			limit += transfer(int64(len(a.Values.([]float32))))
		}
	}
	p.answered = false
	clear(p.values)
	a, took, err := p.process.askWithin(p.host.ctx, limit, q)
	if err != nil {
		return nil, err
	}
	if a.Unsupported != "" {
		return nil, fmt.Errorf("%s: %w: %s", p.host.o.Name, schedule.ErrLibrary, a.Unsupported)
	}
	times, wall, err := a.callTimes(n, took)
	if err == nil && list == nil { // else it has read a file meanwhile
		err = p.calls.behind(n, wall, took)
	}
	if err != nil {
		return nil, p.process.end(fmt.Errorf("%s sent an invalid answer to call and was killed: %w", p.host.o.Name, err), device.ErrFault)
	}
	p.ran = true
	p.perRun = max(p.perRun, wall/time.Duration(n))
	return times, nil
}

// callTimes returns the times of n calls, and their sum, given how long their answer took to come.
func (a *answer) callTimes(n int, took time.Duration) (times []time.Duration, sum time.Duration, err error) {
	if len(a.CallsS) != n {
		return nil, 0, fmt.Errorf("its calls_s has %d times, not %d", len(a.CallsS), n)
	}
	all := 0.0
	for _, v := range a.CallsS {
		if !(v > 0) {
			return nil, 0, errors.New("its times are not positive")
		}
		all += v
		times = append(times, max(1, time.Duration(min(v, took.Seconds()+1)*float64(time.Second))))
	}
	whole := answer{WallS: &all}
	sum, _, err = whole.times(took)
	return times, sum, err
}
