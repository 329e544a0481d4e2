// What mma_poll.cu is configured by, besides mma_layer.cuh.
constexpr int PARTS = Config::PARTS;     // of a group's sequences, which take turns
constexpr int BOUNDED = Config::BOUNDED; // 1: states stay within ±1; 2: they do if the first ones do; 0: they may not
