package persistent

// A WeightLayout is the order of packed weights in memory.
type WeightLayout int

const (
	ByColumn WeightLayout = iota // the units of a column side by side, as the library's products read them
	ByUnit                       // the columns of a unit side by side, for simt.cu
	ByLane                       // fragments, as tensor cores multiply them
)

// String names the layout.
func (w WeightLayout) String() string { return [...]string{"by column", "by unit", "by lane"}[w] }
