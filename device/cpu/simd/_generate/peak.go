package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const peakChains = 12

// peak writes a loop of FMAs on registers alone.
func peak(a *asm) {
	a.begin("peak", "(n int)", fmt.Sprintf("runs n rounds of %d FMAs of %d floats on registers.", peakChains, a.width))
	n := a.Load(a.Param("n"), a.GP64()).(reg.GPVirtual)
	for i := range peakChains + 1 {
		a.zero(a.phys(i))
	}
	a.TESTQ(n, n)
	a.JZ(operand.LabelRef("done"))
	a.Label("loop")
	for i := range peakChains {
		a.VFMADD231PS(a.phys(peakChains), a.phys(peakChains), a.phys(i))
	}
	a.DECQ(n)
	a.JNZ(operand.LabelRef("loop"))
	a.Label("done")
	a.end()
}
