//go:build amd64 && !noasm

#include "textflag.h"

// func flush()
TEXT ·flush(SB), NOSPLIT, $8-0
	STMXCSR mode-8(SP)
	ORL     $0x8040, mode-8(SP)
	LDMXCSR mode-8(SP)
	RET

// func borrowFloats() (mode uint32)
TEXT ·borrowFloats(SB), NOSPLIT, $8-4
	STMXCSR own-8(SP)
	MOVL    own-8(SP), AX
	MOVL    AX, mode+0(FP)
	MOVL    $0x9fc0, own-8(SP)
	LDMXCSR own-8(SP)
	RET

// func returnFloats(mode uint32)
TEXT ·returnFloats(SB), NOSPLIT, $0-4
	LDMXCSR mode+0(FP)
	RET
