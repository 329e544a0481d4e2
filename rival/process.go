package rival

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"rnnbench/device"
	"rnnbench/device/worker"
)

// pipeGrace is how long processes that a killed rival has started may hold its pipes, and dying how long a rival
// may live on after its output has ended: it may have to wait for a processor.
const (
	pipeGrace = time.Second
	dying     = time.Minute
)

// A process is a running rival. It is stopped between requests, so that it takes no time from
// others.
type process struct {
	name   string // of the rival, for messages
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	in     *bufio.Reader
	said   worker.Tail   // on standard error
	ended  chan struct{} // closed when the process has ended
	broken error         // why it can no longer be used; nil: it can
	mark   string        // in its environment
	strays atomic.Value  // the processes that it has started and that have left its group: []int
}

// start starts a rival's command.
func start(name string, command []string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	fail := func(err error) (*process, error) {
		return nil, startFailure(fmt.Errorf("%s cannot be started: %w", name, err))
	}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return fail(err)
	}
	var theirs *os.File
	if p.stdout, theirs, err = os.Pipe(); err != nil {
		return fail(err)
	}
	defer theirs.Close()
	if p.mark = newMark(); p.mark != "" {
		p.cmd.Env = append(os.Environ(), p.mark)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = theirs, &p.said, pipeGrace
	ownGroup(p.cmd)
	if err := worker.StartTied(p.cmd); err != nil {
		_ = p.stdout.Close()
		return fail(err)
	}
	go p.wait()
	p.in = bufio.NewReaderSize(p.stdout, mostLine)
	return p, nil
}

// wait waits for the end of the process. What it has written can still be read for a while, even if
// a process that it has started holds the pipe.
func (p *process) wait() {
	_ = p.cmd.Wait() // the state says more
	close(p.ended)
	time.AfterFunc(pipeGrace, func() { _ = p.stdout.Close() })
}

// askWithin is ask, but ends the process at once when ctx ends; a nil ctx never does.
func (p *process) askWithin(ctx context.Context, limit time.Duration, q request) (*answer, time.Duration, error) {
	if ctx == nil || p.broken != nil {
		return p.ask(limit, q)
	}
	defer context.AfterFunc(ctx, p.kill)()
	return p.ask(limit, q)
}

// ask sends a request and waits for the answer, at most for limit. took is the time between the
// two. Any failure ends the process. Work that the rival declines is no failure: the answer says
// so.
func (p *process) ask(limit time.Duration, q request) (a *answer, took time.Duration, err error) {
	if p.broken != nil {
		return nil, 0, p.broken
	}
	if p.in.Buffered() > 0 {
		line, _ := p.in.Peek(p.in.Buffered())
		return nil, 0, p.end(fmt.Errorf("%s sent a line that nobody asked for and was killed: %s", p.name, quoted(line)), device.ErrFault)
	}
	text, err := json.Marshal(&q)
	if err != nil {
		return nil, 0, err
	}
	resume(p.cmd)
	resumeEach(p.known())
	timer := time.AfterFunc(limit, p.kill)
	start := time.Now()
	_, err = p.stdin.Write(append(text, '\n'))
	var line []byte
	if err == nil {
		line, err = p.in.ReadSlice('\n')
	}
	took = time.Since(start)
	if late := !timer.Stop(); late {
		return nil, 0, p.end(fmt.Errorf("%s did not answer %s within %v and was killed", p.name, q.verb(), limit), device.ErrHang)
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, 0, p.end(fmt.Errorf("%s answered %s with more than %d bytes and was killed", p.name, q.verb(), mostLine), device.ErrFault)
	case err != nil:
		state := p.reap()
		return nil, 0, p.end(fmt.Errorf("%s ended during %s (%s)", p.name, q.verb(), state), device.ErrFault)
	}
	if pause(p.cmd); q.Run == 0 && q.Call == 0 && q.Read == "" { // looking takes longer than short runs
		p.strays.Store(strays(p.mark, p.cmd.Process.Pid))
	}
	pauseEach(p.known())
	a, err = parse(line)
	if err != nil {
		return nil, 0, p.invalid(q, line, err)
	}
	if a.Error != "" {
		return nil, 0, p.end(fmt.Errorf("%s failed during %s: %s", p.name, q.verb(), a.Error), device.ErrFault)
	}
	return a, took, nil
}

// invalid ends a process that sent an invalid answer.
func (p *process) invalid(q request, line []byte, why error) error {
	return p.end(fmt.Errorf("%s sent an invalid answer to %s and was killed: %s: %w", p.name, q.verb(), quoted(line), why), ErrAnswer)
}

// ErrAnswer says that a rival sent something else than an answer of the protocol.
var ErrAnswer = fmt.Errorf("%w: it does not keep to the protocol", device.ErrFault)

func quoted(line []byte) string {
	const most = 120
	return strconv.Quote(oneLine(string(line[:min(len(line), most)]), most))
}

// end kills the process, and adds what it printed last to err.
func (p *process) end(err, cause error) error {
	p.kill()
	p.reap()
	if said := oneLine(p.said.String(), mostText); said != "" {
		err = fmt.Errorf("%w; it printed: %s", err, said)
	}
	p.broken = &failure{err.Error(), []error{cause}}
	return p.broken
}

// A failure is the error of a rival: a text of its own, and the device's errors that it counts as.
type failure struct {
	text   string
	causes []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.causes }

// startFailure marks err as that of a rival that does not start.
func startFailure(err error) error { return &failure{err.Error(), []error{err, device.ErrStart}} }

// known returns the strays that the last look has found.
func (p *process) known() []int {
	list, _ := p.strays.Load().([]int)
	return list
}

// kill kills the process and those that it has started.
func (p *process) kill() {
	killAll(p.cmd)
	killStrays(p.mark, p.cmd.Process.Pid, p.known())
	_ = p.stdout.Close() // survivors may hold it
}

// reap waits for the end of the process and returns how it ended.
func (p *process) reap() string {
	timer := time.AfterFunc(dying, p.kill)
	defer timer.Stop()
	<-p.ended
	return p.cmd.ProcessState.String()
}

// close asks the process to end, and kills it if it does not within a few seconds.
func (p *process) close() {
	if p.broken != nil {
		return
	}
	p.broken = fmt.Errorf("%s is closed", p.name)
	resume(p.cmd)
	resumeEach(p.known())
	timer := time.AfterFunc(5*time.Second, p.kill)
	defer timer.Stop()
	_, _ = p.stdin.Write([]byte(`{"close":1}` + "\n")) // it may have ended
	_ = p.stdin.Close()
	<-p.ended
	killStrays(p.mark, 0, p.known())
}

// alive reports whether the process can be asked.
func (p *process) alive() bool {
	select {
	case <-p.ended: // while it was idle
		p.broken = &failure{p.name + " ended between two requests", []error{device.ErrFault}}
	default:
	}
	return p.broken == nil
}
