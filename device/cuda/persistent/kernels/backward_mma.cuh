// The configuration of backward_mma.cu, besides backward.cuh.
constexpr int EXACT = Config::EXACT; // 1: fp32 as two halves (recurrence.cu); 0: weights and h as stored
