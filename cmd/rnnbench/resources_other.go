//go:build !unix

package main

func lowLimit() error { return nil }
