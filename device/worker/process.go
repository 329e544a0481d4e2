package worker

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"rnnbench/device"
)

// A process is a running worker.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	stdout  io.Closer
	in      *bufio.Reader
	out     *bufio.Writer
	enc     *gob.Encoder
	dec     *gob.Decoder
	bounded bounded
	errors  Tail
	waited  sync.Once
	state   string
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	cmd.Stderr = &p.errors
	cmd.WaitDelay = pipeGrace
	if err := StartTied(cmd); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	p.stdin, p.stdout, p.in, p.out = stdin, stdout, bufio.NewReaderSize(stdout, 1<<16), bufio.NewWriterSize(stdin, 1<<16)
	p.bounded.r = p.in
	p.enc, p.dec = gob.NewEncoder(p.out), gob.NewDecoder(&p.bounded)
	return p, nil
}

// greeting reads the first line, but no more bytes than a greeting has.
func (p *process) greeting() (string, error) {
	var line []byte
	for len(line) < len(greeting) {
		b, err := p.in.ReadByte()
		if err != nil {
			return string(line), err
		}
		if line = append(line, b); b == '\n' {
			break
		}
	}
	return string(line), nil
}

// receive reads an answer of at most messageBytes bytes.
func (p *process) receive(r *response) error {
	p.bounded.left = messageBytes
	err := p.dec.Decode(r)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed):
		return errBroken
	case err != nil || r.Sample.Wall < 0 || r.Sample.Device < 0:
		return errNonsense
	}
	return nil
}

// ending returns an error that says how a process ended that no longer answers.
func (p *process) ending(err error) error {
	if errors.Is(err, errNonsense) {
		p.kill()
		p.reap()
		return fmt.Errorf("%w: %w", errNonsense, device.ErrFault)
	}
	timer := time.AfterFunc(dying, p.kill)
	state := p.reap()
	if ours := !timer.Stop(); !ours && p.signalled() {
		return fmt.Errorf("it ended (%s): %w", state, device.ErrKilled)
	}
	return fmt.Errorf("it ended (%s): %s: %w", state, oneLine(p.errors.String()), device.ErrFault)
}

// signalled reports whether a signal ended the process that comes from outside, for example from a
// user or from a system without memory. Signals of a crash of its own do not count.
func (p *process) signalled() bool {
	if p.cmd.ProcessState == nil {
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	switch status.Signal() {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return true
	}
	return false
}

// pipeGrace is how long child processes of a killed worker may keep its pipes open.
const pipeGrace = time.Second

// dying is how long a process may live on after its pipe is broken. One that was killed may have to wait for a
// processor, or for a driver that frees what it has on a GPU.
const dying = time.Minute

// kill kills the process. It closes the pipe, too, since child processes may keep it open.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.stdout.Close()
}

// lastWords returns the output of a process that did not greet. The process may not end by itself.
func (p *process) lastWords() string {
	timer := time.AfterFunc(pipeGrace, p.kill)
	defer timer.Stop()
	rest, _ := io.ReadAll(io.LimitReader(p.in, 1<<12))
	return string(rest)
}

// reap waits for the end of the process and returns how it ended.
func (p *process) reap() string {
	p.waited.Do(func() {
		_ = p.cmd.Wait() // the state says more than the error
		p.state = p.cmd.ProcessState.String()
	})
	return p.state
}

// end asks the process to end, and kills it after a few seconds.
func (p *process) end() {
	timer := time.AfterFunc(5*time.Second, p.kill)
	defer timer.Stop()
	p.stdin.Close()
	p.reap()
}

// A Tail is a writer that keeps the last tailBytes bytes.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 2048

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if extra := len(t.b) - tailBytes; extra > 0 {
		t.b = t.b[extra:]
	}
	return len(b), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
