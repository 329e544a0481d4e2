// What Go puts ahead of ctcloss.cu for one kernel. TestSamples writes it with -update, of:
// ctc losses
#define CONFIGURED
#include "../../codegen/intrinsics.cu"
#include "../../codegen/common.cu"
#define WAYS 1
#define THREADS 128
#define EACH 1
#define LOGITS float
#define LABEL float
#define LOSS float
#define PROB float
