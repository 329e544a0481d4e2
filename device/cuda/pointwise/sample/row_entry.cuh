// What Go puts behind row.cu for the kernel of sample/row.cuh.
#include "../softmaxloss.cu"
