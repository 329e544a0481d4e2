package record

// Label names a record's technique in tables: its label or else its name.
func (r *Record) Label() string {
	if r.Impl.Label != "" {
		return r.Impl.Label
	}
	return r.Impl.Name
}
