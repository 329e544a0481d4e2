// What backward_block.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 0: a group is one block
constexpr int SAMPLES = Config::SAMPLES; // sequences of a block: 2, 4 or 8
constexpr int AHEAD = Config::AHEAD;     // steps by which inputs are read ahead
