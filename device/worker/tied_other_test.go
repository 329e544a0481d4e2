//go:build !linux

package worker_test

func parent() {}
