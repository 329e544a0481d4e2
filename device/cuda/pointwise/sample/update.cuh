// What Go puts ahead of update.cu for one kernel. TestSamples writes it with -update, of:
// training lstm/train/input=64/hidden=256/layers=1/batch=16/steps=9/output=40 {Rule:sgd Beta1:0 Beta2:0 Epsilon:0 Norm:false LossScale:0 Carry:false Replicas:0 Whole:0}
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define MOMENTS 0
#define COPIES 0
#define PARAM float
#define COPY float
#define GRAD float
#define FIRST float
#define SECOND float
#define RATES float
#define SQUARES float
