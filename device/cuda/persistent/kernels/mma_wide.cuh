// The configuration of mma_wide.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 1: the blocks of a group are spread over the GPU
constexpr int CLUSTER = Config::CLUSTER; // blocks per group
constexpr int COPIERS = Config::COPIERS; // blocks per cluster, which copy for each other
constexpr int PARTNERS = Config::PARTNERS; // 2: pairs of blocks, each a cluster, share the columns of the same rows; else 1
constexpr int UNITS = Config::UNITS;     // units per block, or per pair of partners: 64 rows of weights
constexpr int BAND = Config::BAND;       // units per warp: 16 rows of weights
constexpr int SAMPLES = Config::SAMPLES; // sequences per turn, a multiple of 16 up to 256
constexpr int PRODUCTS = Config::PRODUCTS;     // products per warpgroup and turn, of 16 columns each, an even number
constexpr int HELD = Config::HELD;       // products whose weights are in registers, an even number; the others' are in shared memory
constexpr int PORTION = Config::PORTION; // products per copy
constexpr int DEPTH = Config::DEPTH;       // places for a warpgroup's copies
constexpr int MORE = Config::MORE;       // registers of a multiplying thread
constexpr int FEWER = Config::FEWER;     // registers of the other threads
constexpr int EXACT = Config::EXACT;     // 0: weights and h as stored
constexpr int ORDERED = Config::ORDERED; // 1: weights lie as fragments (pack_fragments.cu); 0: as the library's products read them
constexpr int CLOCKS = Config::CLOCKS;   // 1: count the cycles of a step's phases (recurrence.cu)
