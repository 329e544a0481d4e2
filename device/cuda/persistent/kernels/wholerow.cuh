// The configuration of wholerow.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;       // 0: groups are clusters
constexpr int CLUSTER = Config::CLUSTER;     // blocks per group
constexpr int UNITS = Config::UNITS;         // units per block
constexpr int SEQUENCES = Config::SEQUENCES; // sequences per group
constexpr int BAND = Config::BAND;           // units per warp: 4
constexpr int EXACT = Config::EXACT;         // 1: fp32 as two halves (recurrence.cu); 0: weights and h as stored
constexpr int BOUNDED = Config::BOUNDED;     // 1: states stay within ±1
constexpr int ORDERED = Config::ORDERED;     // 1: the columns of a unit lie side by side; 0: the units of a column do
constexpr int CLOCKS = Config::CLOCKS;       // 1: count the cycles of a step's phases (recurrence.cu)
