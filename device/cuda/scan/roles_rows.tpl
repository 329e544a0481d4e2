// The blocks of a team whose tiles are whole rows. The first blocks are walkers (walk.cu). In the
// others, one warp copies a tile at a time, and three wait for states. The code of the compute
// threads follows this text. team_source.go fills in words in capitals that are not constants.
extern "C" __global__ void __launch_bounds__(LAUNCHED, 1)
NAME(int steps, int batch, int hidden, int chains, int tiles, int walkers, int period, word* ticket, word* sums, word* states, unsigned* statusMATRICES) {
  DYNAMIC_SHARED(memory);
NEXT
  grid g = {steps, batch, hidden, chains, tiles, tiles, 1, period, sums, states, status};
  g.walkers = walkers;
  g.settle();
  float* const starts = (float*)(memory + PLACES * BUFFER);
  several* const rows = (several*)(starts + STATES * VALUES);
  const shared_t full = shared_address(rows + 2 * DEEP * LANES), empty = full + 8 * PLACES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PLACES; i++) bar_init(full + 8 * i, COPIERS), bar_init(empty + 8 * i, ROWS);
    bar_publish();
  }
  wait_previous();
  g.run = (get_staying(ticket) >> 32) + 1;
  __syncthreads();
  count_block(ticket, (tiles + ROUND - 1) / ROUND);
  if (blockIdx.x < walkers) {
    walk<WALKED>(g, blockIdx.x, memory, g.run);
    return;
  }
  if (threadIdx.x >= THREADS) {
FEWER
    const int me = threadIdx.x - THREADS;
    if (me >= 32) seek_given(g, me / 32 - 1, starts);
    if (me >= COPIERS) return;
    turn ahead = g.begin();
    for (int i = 0, slot = 0; g.there(ahead); g.next(ahead), i++, slot = slot + 1 == PLACES ? 0 : slot + 1) {
      if (i >= PLACES) await(empty + 8 * slot, i / PLACES - 1);
      if (PACED && i > 0) await(full + 8 * ((i - 1) % PLACES), (i - 1) / PLACES);
FETCH
    }
    return;
  }
MORE
