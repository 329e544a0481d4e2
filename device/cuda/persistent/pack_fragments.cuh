// What pack_fragments.cu is configured by: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 0: there are no groups
constexpr int ORDERED = Config::ORDERED; // 0: weights are as products read them
constexpr int BAND = Config::BAND;       // units of a warp: 16
constexpr int EXACT = Config::EXACT;     // 1: single precision in halves (recurrence.cu); 0: weights and h are as they are stored
