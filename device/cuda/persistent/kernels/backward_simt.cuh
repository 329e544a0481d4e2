// The configuration of backward_simt.cu, besides backward.cuh.
constexpr int OUT = Config::OUT;     // units that a thread multiplies for
constexpr int LANES = Config::LANES; // threads that share these units
