// What mma.cu is configured by, besides mma_layer.cuh.
constexpr int STREAMED = Config::STREAMED; // inputs of a unit and step that are brought to shared memory ahead, or 0
