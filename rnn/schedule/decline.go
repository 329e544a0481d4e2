package schedule

import "fmt"

// Reasons to decline work. Each wraps ErrUnsupported and has its text.
var (
	ErrCell       = declined() // the cell
	ErrInput      = declined() // the form of the input
	ErrHistory    = declined() // steps kept from a previous minibatch
	ErrHeads      = declined() // units divided into heads
	ErrProjection = declined() // the projection of a layer's outputs
	ErrSkip       = declined() // shortcuts past layers
	ErrLookahead  = declined() // row convolutions
	ErrNorm       = declined() // normalisation inside the layers
	ErrCalls      = declined() // calls one by one, with states kept
	ErrPrecision  = declined()
	ErrDevice     = declined() // another device can do it
	ErrLibrary    = declined() // a vendor's library declines it
	ErrDirection  = declined() // the direction of the layers
	ErrLengths    = declined() // lengths of the sequences
	ErrResets     = declined() // steps at which sequences begin anew
)

func declined() error { return fmt.Errorf("%w", ErrUnsupported) }

// Declines lists the reasons.
func Declines() []error {
	return []error{ErrKnob, ErrCell, ErrInput, ErrHistory, ErrHeads, ErrProjection, ErrSkip, ErrLookahead, ErrNorm, ErrCalls, ErrPrecision, ErrDevice, ErrLibrary, ErrDirection, ErrLengths, ErrResets}
}
