// Package exit has the program's exit codes, and errors that carry one.
package exit

// Exit codes, as the help of rnnbench lists them.
const (
	Done        = 0
	Error       = 1
	Usage       = 2
	Failures    = 3
	Changed     = 4
	NoDevice    = 5
	Interrupted = 130
)

// A Failure is an error that decides the exit code.
type Failure struct {
	Code int
	Err  error
	Hint string // what the user may do; "": nothing to say
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// With returns err as a *Failure with an exit code and a hint.
func With(code int, err error, hint string) error { return &Failure{code, err, hint} }

// Misuse returns err as a *Failure for a mistake in the command line or the configuration.
func Misuse(err error, hint string) error { return &Failure{Usage, err, hint} }
