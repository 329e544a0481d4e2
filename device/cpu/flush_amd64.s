//go:build amd64 && !noasm

#include "textflag.h"

// func flush()
TEXT ·flush(SB), NOSPLIT, $8-0
	STMXCSR mode-8(SP)
	ORL     $0x8040, mode-8(SP)
	LDMXCSR mode-8(SP)
	RET
