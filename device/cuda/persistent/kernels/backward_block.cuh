// The configuration of backward_block.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 0: a group is one block
constexpr int SAMPLES = Config::SAMPLES; // sequences per block: 2, 4 or 8
constexpr int AHEAD = Config::AHEAD;     // steps that inputs are read ahead
