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
	cmd.WaitDelay = heirs
	if err := StartTied(cmd); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	p.stdin, p.stdout, p.in, p.out = stdin, stdout, bufio.NewReaderSize(stdout, 1<<16), bufio.NewWriterSize(stdin, 1<<16)
	p.bounded.r = p.in
	p.enc, p.dec = gob.NewEncoder(p.out), gob.NewDecoder(&p.bounded)
	return p, nil
}

// greeting reads the first line as far as a greeting goes.
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

// receive reads an answer of at most messageBytes.
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

// ending says how the process ended that no longer answers.
func (p *process) ending(err error) error {
	if errors.Is(err, errNonsense) {
		p.kill()
		p.reap()
		return fmt.Errorf("%w: %w", errNonsense, device.ErrFault)
	}
	timer := time.AfterFunc(heirs, p.kill)
	state := p.reap()
	if ours := !timer.Stop(); !ours && p.signalled() {
		return fmt.Errorf("it ended (%s): %w", state, device.ErrKilled)
	}
	return fmt.Errorf("it ended (%s): %s: %w", state, oneLine(p.errors.String()), device.ErrFault)
}

// signalled reports whether what ended the process is what people and systems send,
// such as a system whose memory is full, and no crash of its own.
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

// heirs is for how long processes that a killed one has started may hold its pipes.
const heirs = time.Second

// kill ends the process, and nobody waits for what those that it has started may say.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // that it has ended is as good
	_ = p.stdout.Close()
}

// lastWords is what a process says that is no worker and may stay all the same.
func (p *process) lastWords() string {
	timer := time.AfterFunc(heirs, p.kill)
	defer timer.Stop()
	rest, _ := io.ReadAll(io.LimitReader(p.in, 1<<12))
	return string(rest)
}

// reap waits for the end of the process and says how it ended.
func (p *process) reap() string {
	p.waited.Do(func() {
		_ = p.cmd.Wait() // the state says more
		p.state = p.cmd.ProcessState.String()
	})
	return p.state
}

// end has the process end by itself, or not, within a few seconds.
func (p *process) end() {
	timer := time.AfterFunc(5*time.Second, p.kill)
	defer timer.Stop()
	p.stdin.Close()
	p.reap()
}

// A Tail keeps the last of what is written to it.
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
