//go:build cuda

// gorgonia.org/cu calls cuInit before main, and ends the process if there is no GPU. A library must
// not do that to its host program: so this cuInit takes the place of libcuda's for cu, and newDriver
// calls libcuda's.
__attribute__((visibility("hidden"))) int cuInit(unsigned flags) { return 0; }
