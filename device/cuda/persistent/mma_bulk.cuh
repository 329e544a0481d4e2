// What mma_bulk.cu is configured by, besides mma_layer.cuh.
constexpr int SLOTS = Config::SLOTS; // states of a turn that there is room for: 1 or 2
