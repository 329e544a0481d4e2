// What Go puts ahead of scatter.cu for one kernel. TestSamples writes it with -update, of:
// naive rnn-relu/train/input=512/hidden=20/layers=3/batch=1/steps=20/onehot/tf32 h200
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define ENTRIES 1
#define NOTED 0
#define INDEX float
#define FROM float
#define TABLE float
