// The warps of a team's block, with groups: one copies a tile at a time, one composes group
// aggregates, and the others find exclusive prefixes. The code of the compute threads follows this
// text. team_source.go fills in words in capitals that are not constants.
extern "C" __global__ void __launch_bounds__(LAUNCHED, 1)
NAME(int steps, int batch, int hidden, int chains, int tiles, int group, int period, word* ticket, word* sums, word* totals, unsigned* statusMATRICES) {
  DYNAMIC_SHARED(memory);
NEXT
  grid g = {steps, batch, hidden, chains, tiles, tiles, group, period, sums, totals, status};
  g.settle();
  unsigned char* const staged = memory + PLACES * BUFFER;
  float* const starts = (float*)(staged + STAGED);
  several* const rows = (several*)(starts + STATES * VALUES);
  float* const walked = (float*)(rows + 2 * ROWS * LANES);
  int *const found = (int*)(walked + (period * VALUES + 1) / 2 * 2), *const done = found + 1;
  const shared_t full = shared_address(done + 1), empty = full + 8 * PLACES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PLACES; i++) bar_init(full + 8 * i, COPIERS), bar_init(empty + 8 * i, ROWS);
    bar_publish();
    *found = *done = 0;
  }
  wait_previous();
  g.run = (get_staying(ticket) >> 32) + 1;
  __syncthreads();
  count_block(ticket);
  if (threadIdx.x >= THREADS) {
FEWER
    const int me = threadIdx.x - THREADS, warp = me / 32;
    if (warp > SEEKERS) join(g, done);
    else if (warp > 0) seek(g, warp - 1, starts, walked, found, done);
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
