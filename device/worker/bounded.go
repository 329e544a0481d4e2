package worker

import (
	"bufio"
	"errors"
)

// messageBytes is the most bytes of an answer, without matrices. The longest answers are a device's
// vocabulary of knobs and its findings, a few thousand bytes. In memory an answer is at most some
// hundred times as long.
const messageBytes = 1 << 20

// errorBytes limits the text of a reported error, which may contain a compiler's listing.
const errorBytes = 1 << 14

var errTooLong = errors.New("the message is too long")

// A bounded reader reads the rest of a message, of which at most left bytes may follow. It never
// reads ahead, since matrix data may follow.
type bounded struct {
	r    *bufio.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *bounded) ReadByte() (byte, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	b.left--
	return b.r.ReadByte()
}
