module rnnbench/device/cpu/simd/generate

go 1.26.0

require github.com/mmcloughlin/avo v0.5.0
