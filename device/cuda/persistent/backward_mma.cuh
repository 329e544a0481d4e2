// What backward_mma.cu is configured by, besides backward.cuh.
constexpr int EXACT = Config::EXACT; // 1: single precision in halves (recurrence.cu); 0: weights and h are as they are stored
