// What Go puts ahead of update_rows.cu for one kernel. TestSamples writes it with -update, of:
// training lstm/train/input=4200/hidden=256/layers=1/batch=16/steps=9/onehot/output=40 {Rule:sgd Beta1:0 Beta2:0 Epsilon:0 Nesterov:false Norm:false LossScale:0 Carry:false Replicas:0 Whole:0}
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define V 4
#define PARAM float
#define GRAD float
#define INDEX float
#define RATES float
#define SQUARES float
#include "../rule.cu"
