// The configuration of backward.cu and its products: Go prints a struct Config with these fields
// and those of the product's own header.
constexpr int SPREAD = Config::SPREAD;     // 1: blocks also exchange words through memory; 0: a group is a cluster
constexpr int CLUSTERS = Config::CLUSTERS; // clusters per group
constexpr int CLUSTER = Config::CLUSTER;   // blocks per cluster
constexpr int UNITS = Config::UNITS;       // units per block
constexpr int SAMPLES = Config::SAMPLES;   // sequences that a group runs at a time
constexpr int WARPS = Config::WARPS;       // warps per block
constexpr int CHUNKS = Config::CHUNKS;     // pieces of the columns: of a thread, or of a warp with 64 bytes each
constexpr int RESIDENT = Config::RESIDENT; // a thread's pieces of weights in registers; the others are in shared memory
constexpr int SAME = Config::SAME;         // lanes that share a unit's last sum
