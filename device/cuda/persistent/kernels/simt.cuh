// The configuration of simt.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;     // 1: the blocks of a group are spread over the GPU; 0: they are a cluster
constexpr int CLUSTER = Config::CLUSTER;   // blocks per group
constexpr int UNITS = Config::UNITS;       // units per block
constexpr int SAMPLES = Config::SAMPLES;   // sequences that a group runs at a time
constexpr int TILE = Config::TILE;         // units that a thread multiplies
constexpr int LANES = Config::LANES;       // threads that share these units
constexpr int CHUNKS = Config::CHUNKS;     // pieces of a thread's columns
constexpr int RESIDENT = Config::RESIDENT; // pieces in registers; the others are in shared memory
constexpr int SETTLED = Config::SETTLED;   // 1: wait for all weights before the loop over steps
constexpr int ORDERED = Config::ORDERED;   // 1: the columns of a unit lie side by side; 0: the units of a column do
constexpr int CLOCKS = Config::CLOCKS;     // 1: count the cycles of a step's phases (recurrence.cu)
