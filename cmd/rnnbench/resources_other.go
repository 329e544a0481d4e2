//go:build !unix

package main

func lacking() error { return nil }
