package table

// A builder builds a table from columns, each with a function that fills its cell from a row's R.
type builder[R any] struct {
	*Table
	fill []func(R) Cell
}

// column adds a column.
func (b *builder[R]) column(c Column, f func(R) Cell) {
	b.Columns = append(b.Columns, c)
	b.fill = append(b.fill, f)
}

// row adds a row for r.
func (b *builder[R]) row(r R) {
	row := make([]Cell, len(b.fill))
	for i, f := range b.fill {
		row[i] = f(r)
	}
	b.Rows = append(b.Rows, row)
}
