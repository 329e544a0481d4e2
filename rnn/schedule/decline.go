package schedule

import "fmt"

// What is at fault where work is declined. Each is an ErrUnsupported, and its
// text is that one's.
var (
	ErrCell       = declined() // the recurrent unit
	ErrInput      = declined() // the form of the input
	ErrHistory    = declined() // steps kept of a previous minibatch
	ErrHeads      = declined() // units divided into heads
	ErrProjection = declined() // of the units of a layer
	ErrCalls      = declined() // one by one, with states kept
	ErrPrecision  = declined()
	ErrDevice     = declined() // another device can
	ErrLibrary    = declined() // a vendor's library says so
	ErrDirection  = declined() // the direction of the layers
	ErrLengths    = declined() // of the sequences
	ErrResets     = declined() // at which sequences begin anew
)

func declined() error { return fmt.Errorf("%w", ErrUnsupported) }

// Declines lists what can be at fault.
func Declines() []error {
	return []error{ErrKnob, ErrCell, ErrInput, ErrHistory, ErrHeads, ErrProjection, ErrCalls, ErrPrecision, ErrDevice, ErrLibrary, ErrDirection, ErrLengths, ErrResets}
}
