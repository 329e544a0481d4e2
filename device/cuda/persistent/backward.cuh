// What backward.cu and its products are configured by: Go prints a struct Config with these
// fields, and those of the product's own header.
constexpr int SPREAD = Config::SPREAD;     // 1: blocks exchange words through memory, too; 0: a group is a cluster
constexpr int CLUSTERS = Config::CLUSTERS; // clusters of a group
constexpr int CLUSTER = Config::CLUSTER;   // blocks of a cluster
constexpr int UNITS = Config::UNITS;       // units of a block
constexpr int SAMPLES = Config::SAMPLES;   // sequences that a group runs at a time
constexpr int WARPS = Config::WARPS;       // warps of a block
constexpr int CHUNKS = Config::CHUNKS;     // pieces of the columns: of a thread, or 64 bytes each of a warp
constexpr int RESIDENT = Config::RESIDENT; // pieces of weights of a thread in registers; the others are in shared memory
constexpr int SAME = Config::SAME;         // lanes that share the last sum of a unit
