// Package data has tasks that networks are trained on.
package data

// A Source yields minibatches of a task without end.
type Source interface {
	Shape() Shape
	Next(x, target []float32)
	State() []byte
	Restore(state []byte) error
}

// A Shape is what a task asks of a network.
type Shape struct {
	Input     int
	OneHot    bool
	Output    int
	Continues bool
}
