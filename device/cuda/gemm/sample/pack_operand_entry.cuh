// What Go puts behind pack_operand.cu for the kernel of sample/pack_operand.cuh.
#include "../split_fp16.cu"
