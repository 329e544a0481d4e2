// The configuration of mma.cu, besides mma_layer.cuh.
constexpr int STREAMED = Config::STREAMED; // inputs per unit and step that are read ahead to shared memory; 0: none
