// What Go puts ahead of sumrows.cu for one kernel. TestSamples writes it with -update, of:
// naive mingru/train/input=512/hidden=64/layers=3/batch=1/steps=2/output=40/fp16 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 1
#define FROM fp16
#define TO float
#define LARGEST 0
#define RESIDENT 7
