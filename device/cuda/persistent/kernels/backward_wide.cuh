// The configuration of backward_wide.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;         // 1: the clusters of a group are spread over the GPU
constexpr int CLUSTERS = Config::CLUSTERS;     // clusters per group, 32 at most
constexpr int CLUSTER = Config::CLUSTER;       // blocks per cluster
constexpr int UNITS = Config::UNITS;           // units per block, a multiple of 8
constexpr int SAMPLES = Config::SAMPLES;       // sequences per turn, a multiple of 16 up to 256
constexpr int WARPGROUPS = Config::WARPGROUPS; // warpgroups that multiply
constexpr int HEIGHT = Config::HEIGHT;         // tiles of 64 units per warpgroup: 16 units of each per warp
constexpr int PRODUCTS = Config::PRODUCTS;     // products per tile and turn, of 16 columns each
constexpr int HELD = Config::HELD;             // products whose weights are in registers
constexpr int PASSING = Config::PASSING;       // products whose weights come from memory in each turn; the others' are in shared memory
constexpr int ROUND = Config::ROUND;           // places for such weights, in products
constexpr int KEPT = Config::KEPT;             // products whose weights the L2 cache is asked to keep
constexpr int PORTION = Config::PORTION;       // products per copy of gradients
constexpr int DEPTH = Config::DEPTH;           // places for such copies
constexpr int MORE = Config::MORE;             // registers of a multiplying thread; 0: as launched
constexpr int FEWER = Config::FEWER;           // registers of the other threads
