// What Go puts ahead of squares.cu for one kernel. TestSamples writes it with -update, of:
// training lstm/train/input=64/hidden=256/layers=1/batch=16/steps=9/output=40 {Rule:sgd Beta1:0.9 Beta2:0 Epsilon:0 Nesterov:false Norm:true LossScale:0 Carry:true Replicas:0 Whole:0}
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define SEGMENTS 64
#define V 4
#define FROM float
#define OUT float
#define INDEX float
