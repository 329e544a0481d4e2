package main

import (
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// mostSilence is how long a command may say nothing. It is less than the half second that users wait, and more
// than progress.Moment, after which most commands name what they do.
const mostSilence = 400 * time.Millisecond

// A silence lasts until a command writes to stderr for the first time.
type silence struct {
	sync.Mutex               // of the first line
	most       time.Duration // since the program's start, after which a command says that it is at work; 0: never
	broken     bool
}

// end ends the silence. Call it before anything is written to stderr.
func (s *silence) end() {
	s.Lock()
	defer s.Unlock()
	s.broken = true
}

// breakSilence prints that cmd is at work once the silence has lasted too long. done has it print nothing
// any more. Workers speak to programs only, so they stay silent.
func breakSilence(p *program, cmd *cobra.Command) (done func()) {
	s := &p.silence
	if s.most == 0 || p.quiet || cmd.Hidden {
		return func() {}
	}
	speak := func() {
		s.Lock()
		defer s.Unlock()
		if !s.broken {
			s.broken = true
			say(p, cmd.CommandPath()+" is at work")
		}
	}
	left := s.most - time.Since(p.start)
	if left <= 0 {
		speak()
		return func() {}
	}
	timer := time.AfterFunc(left, speak)
	return func() {
		timer.Stop()
		s.end()
	}
}

// A speaker writes to stderr, which ends the silence.
type speaker struct{ *program }

func (s speaker) Write(b []byte) (int, error) {
	s.silence.end()
	return s.err.Write(b)
}
