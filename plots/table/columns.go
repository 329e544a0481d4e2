package table

// A builder makes a table column by column: each knows how its cells are filled from what
// a row is of.
type builder[R any] struct {
	*Table
	fill []func(R) Cell
}

// column adds a column.
func (b *builder[R]) column(c Column, f func(R) Cell) {
	b.Columns = append(b.Columns, c)
	b.fill = append(b.fill, f)
}

// row adds the row of r.
func (b *builder[R]) row(r R) {
	row := make([]Cell, len(b.fill))
	for i, f := range b.fill {
		row[i] = f(r)
	}
	b.Rows = append(b.Rows, row)
}
