// The configuration of mma_bulk.cu, besides mma_layer.cuh.
constexpr int SLOTS = Config::SLOTS; // places for a turn's states: 1 or 2
