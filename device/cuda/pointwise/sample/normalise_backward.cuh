// What Go puts ahead of normalise_backward.cu for one kernel. TestSamples writes it with -update, of:
// norm lstm/train/input=64/hidden=256/layers=1/batch=16/steps=3/norm=layer
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define EACH 1
#define DOUT float
#define FROM float
#define GAIN float
#define DX float
#define SHARE float
#include "../row.cu"
