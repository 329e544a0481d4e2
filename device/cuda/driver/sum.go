package driver

// A Sum adds vectors up over all replicas, in place.
type Sum struct{ Vectors []Vector }

// A Vector is contiguous values.
type Vector struct {
	At      Pointer
	Values  int
	Element Element
}
