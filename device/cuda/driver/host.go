package driver

// A Host lets the GPU work for a host program, on its threads and in order with its streams. A
// stream of the host program is a CUstream; 0 is the default stream.
type Host interface {
	// Enter makes the GPU's context current on the calling thread, and leave restores what was
	// current before. Close needs no Enter.
	Enter() (leave func(), err error)

	// Fork makes stream 0 wait for all earlier work of the host program's stream, and Join makes
	// that stream wait for all earlier work of stream 0. Both record e. They may be part of a graph
	// that the host program captures on the stream, as all work that Issue and Replay begin between
	// them.
	Fork(stream uintptr, e Event) error
	Join(stream uintptr, e Event) error

	// Capturing reports whether the host program captures its stream in a graph.
	Capturing(stream uintptr) (bool, error)
}
