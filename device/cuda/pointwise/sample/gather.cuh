// What Go puts ahead of gather.cu for one kernel. TestSamples writes it with -update, of:
// naive mingru/forward/input=64/hidden=20/layers=3/batch=16/steps=2/onehot/output=40/tf32 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define INDEX float
#define TABLE float
#define TO float
