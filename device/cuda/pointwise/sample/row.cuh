// What Go puts ahead of row.cu for one kernel. TestSamples writes it with -update, of:
// naive mingru/train/input=512/hidden=64/layers=3/batch=1/steps=2/output=40/fp16 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define EACH 1
#define WEIGHTED 0
#define LOGITS fp16
#define TARGET float
#define LOSS float
#define PROB fp16
#define WEIGHT float
