// What Go puts behind rule.cu for the kernel of sample/rule.cuh.
#include "../update.cu"
