// What backward_simt.cu is configured by, besides backward.cuh.
constexpr int OUT = Config::OUT;     // units of the layer that a thread multiplies for
constexpr int LANES = Config::LANES; // threads that share these units
