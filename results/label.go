package results

// Label names a record's technique with its settings, as --impl takes it.
func (r *Record) Label() string {
	if r.Impl.Label != "" {
		return r.Impl.Label
	}
	return r.Impl.Name
}
