//go:build !darwin && !windows

package record

// askSystem has nothing to add to what the system publishes as files.
func (e *Environment) askSystem() {}
