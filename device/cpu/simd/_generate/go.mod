module rnnbench/device/cpu/simd/generate

go 1.26.0

require (
	github.com/mmcloughlin/avo v0.5.0
	rnnbench v0.0.0
)

require (
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)

replace rnnbench => ../../../..
