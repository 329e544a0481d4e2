// The configuration that mma.cu, mma_poll.cu and mma_bulk.cu share: Go prints a struct Config with
// these fields and those of the kernel's own header.
constexpr int SPREAD = Config::SPREAD;       // 1: the blocks of a group are spread over the GPU; 0: they are a cluster
constexpr int CLUSTER = Config::CLUSTER;     // blocks per group
constexpr int UNITS = Config::UNITS;         // units per block
constexpr int SEQUENCES = Config::SEQUENCES; // sequences that a group runs at a time
constexpr int SAMPLES = Config::SAMPLES;     // sequences that are multiplied together, a multiple of 8
constexpr int BAND = Config::BAND;           // units per warp: 4, 8 or 16
constexpr int SPLIT = Config::SPLIT;         // warps that share the columns of a band
constexpr int CHUNKS = Config::CHUNKS;       // 64-byte pieces of a warp's columns
constexpr int RESIDENT = Config::RESIDENT;   // pieces in registers; the others are in shared memory
constexpr int EXACT = Config::EXACT;         // 1: fp32 as two halves (recurrence.cu); 0: weights and h as stored
constexpr int ORDERED = Config::ORDERED;     // 1: weights lie as fragments (pack_fragments.cu); 0: as the library's products read them
constexpr int CLOCKS = Config::CLOCKS;       // 1: count the cycles of a step's phases (recurrence.cu)
