// What Go puts ahead of gather.cu for one kernel. TestSamples writes it with -update, of:
// naive rnn-tanh/forward/input=9/hidden=256/layers=1/batch=1/steps=9/onehot/output=40/bf16 a100
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define INDEX float
#define TABLE float
#define TO float
