// What Go puts behind fragments.cu for the kernel of sample/fragments.cuh.
#include "../pack_fragments.cu"
