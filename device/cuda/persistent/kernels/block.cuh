// The configuration of block.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 0: a group is one block
constexpr int SAMPLES = Config::SAMPLES; // sequences per block: 4 or 8
constexpr int BAND = Config::BAND;       // units per warp: 8
constexpr int EXACT = Config::EXACT;     // 0: weights and h have 16 bits
constexpr int ORDERED = Config::ORDERED; // 1: the columns of a unit lie side by side; 0: the units of a column do
constexpr int CLOCKS = Config::CLOCKS;   // 1: count the cycles of a step's phases (recurrence.cu)
