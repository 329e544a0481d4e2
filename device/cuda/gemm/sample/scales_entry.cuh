// What Go puts behind scales.cu for the kernel of sample/scales.cuh.
#include "../pack_operand.cu"
#include "../split_fp16.cu"
