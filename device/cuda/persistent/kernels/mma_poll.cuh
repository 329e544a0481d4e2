// The configuration of mma_poll.cu, besides mma_layer.cuh.
constexpr int PARTS = Config::PARTS;     // parts of a group's sequences, which take turns
constexpr int BOUNDED = Config::BOUNDED; // 1: states stay within ±1; 2: if the first ones do; 0: not known
