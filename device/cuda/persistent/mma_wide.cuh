// What mma_wide.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 1: the blocks of a group are spread over the GPU
constexpr int CLUSTER = Config::CLUSTER; // blocks of a group
constexpr int COPIERS = Config::COPIERS; // blocks of a cluster, which copy for each other
constexpr int UNITS = Config::UNITS;     // units of a block: 64 rows of weights
constexpr int BAND = Config::BAND;       // units of a warp: 16 rows of weights
constexpr int SAMPLES = Config::SAMPLES; // sequences of a turn, a multiple of 16 up to 256
constexpr int PRODUCTS = Config::PRODUCTS;     // products of a warpgroup in a turn, of 16 columns each, an even number
constexpr int HELD = Config::HELD;       // of these, those whose weights are in registers, an even number; the others are in shared memory
constexpr int PORTION = Config::PORTION; // products by what is copied at once
constexpr int DEPTH = Config::DEPTH;       // copies of a warpgroup that there is room for
constexpr int MORE = Config::MORE;       // registers of a thread that multiplies
constexpr int FEWER = Config::FEWER;     // registers of the others
constexpr int EXACT = Config::EXACT;     // 0: weights and h are as they are stored
constexpr int ORDERED = Config::ORDERED; // 1: weights lie as warps take them (pack_fragments.cu); 0: as products read them
constexpr int CLOCKS = Config::CLOCKS;   // 1: count the cycles of a step's phases (recurrence.cu)
