// What backward_bulk.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;     // 1: the clusters of a group are spread over the GPU
constexpr int CLUSTERS = Config::CLUSTERS; // clusters of a group
constexpr int CLUSTER = Config::CLUSTER;   // blocks of a cluster
constexpr int UNITS = Config::UNITS;       // units of a block
constexpr int SAMPLES = Config::SAMPLES;   // sequences of a turn
constexpr int WARPS = Config::WARPS;       // warps of a block
constexpr int BAND = Config::BAND;         // units whose gradients lie side by side
constexpr int HEIGHT = Config::HEIGHT;     // tiles of 16 units that a warp multiplies for
constexpr int SPLIT = Config::SPLIT;       // warps that share the columns
constexpr int CHUNKS = Config::CHUNKS;     // pieces of a warp's columns, 64 bytes each
constexpr int RESIDENT = Config::RESIDENT; // of these pieces, those in registers; the others are in shared memory
constexpr int SLOTS = Config::SLOTS;       // gradients of a turn that there is room for: 1 or 2
constexpr int EXACT = Config::EXACT;       // 1: single precision in halves (recurrence.cu); 0: weights and h are as they are stored
constexpr int WORDED = Config::WORDED;     // 1: gradients travel as words; 0: they are counted and copied
constexpr int ORDERED = Config::ORDERED;   // 0: weights lie as products read them
