// What mma_stream.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;       // 1: the blocks of a group are spread over the GPU
constexpr int CLUSTER = Config::CLUSTER;     // blocks of a group
constexpr int UNITS = Config::UNITS;         // units of a block, an even number
constexpr int BAND = Config::BAND;           // units of a warp: all of its block's
constexpr int SEQUENCES = Config::SEQUENCES; // sequences that a group runs at a time
constexpr int SAMPLES = Config::SAMPLES;     // these, rounded up to a multiple of 8
constexpr int SPLIT = Config::SPLIT;         // warps of a block, which share the columns
constexpr int CHUNKS = Config::CHUNKS;       // pieces of a warp's columns, 64 bytes each, of two halves
constexpr int NEAR = Config::NEAR;           // of these halves, those in registers
constexpr int PASSING = Config::PASSING;     // of these halves, those that come from memory at each step; the others are in shared memory
constexpr int STAGE = Config::STAGE;         // halves that come in one copy
constexpr int RING = Config::RING;           // copies of a warp that there is room for
constexpr int EXACT = Config::EXACT;         // 1: single precision in halves (recurrence.cu); 0: weights and h are as they are stored
constexpr int BOUNDED = Config::BOUNDED;     // 1: states stay within ±1; 2: they do if the first ones do; 0: they may not
constexpr int ORDERED = Config::ORDERED;     // 1: weights lie as warps take them (pack_fragments.cu); 0: as products read them
constexpr int CLOCKS = Config::CLOCKS;       // 1: count the cycles of a step's phases (recurrence.cu)
