// What backward_wide.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;         // 1: the clusters of a group are spread over the GPU
constexpr int CLUSTERS = Config::CLUSTERS;     // clusters of a group, 32 at most
constexpr int CLUSTER = Config::CLUSTER;       // blocks of a cluster
constexpr int UNITS = Config::UNITS;           // units of a block, a multiple of 8
constexpr int SAMPLES = Config::SAMPLES;       // sequences of a turn, a multiple of 16 up to 256
constexpr int WARPGROUPS = Config::WARPGROUPS; // that multiply
constexpr int HEIGHT = Config::HEIGHT;         // tiles of 64 units of a warpgroup, so of 16 units of a warp
constexpr int PRODUCTS = Config::PRODUCTS;     // products of a tile in a turn, of 16 columns each
constexpr int HELD = Config::HELD;             // of these, those whose weights are in registers
constexpr int PASSING = Config::PASSING;       // those whose weights come from memory in each turn; the others are in shared memory
constexpr int ROUND = Config::ROUND;           // of the latter, those that there is room for
constexpr int KEPT = Config::KEPT;             // of the latter, those that the L2 cache is to keep, if it does not hold all
constexpr int PORTION = Config::PORTION;       // products by what is copied at once of the gradients
constexpr int DEPTH = Config::DEPTH;           // such copies that there is room for
constexpr int MORE = Config::MORE;             // registers of a thread that multiplies; 0: as all have
constexpr int FEWER = Config::FEWER;           // registers of the others
