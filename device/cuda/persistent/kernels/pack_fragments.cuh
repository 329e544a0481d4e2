// The configuration of pack_fragments.cu: Go prints a struct Config with these fields.
constexpr int SPREAD = Config::SPREAD;   // 0: there are no groups
constexpr int ORDERED = Config::ORDERED; // 0: weights lie as the library's products read them
constexpr int BAND = Config::BAND;       // units per warp: 16
constexpr int EXACT = Config::EXACT;     // 1: fp32 as two halves (recurrence.cu); 0: weights and h as stored
