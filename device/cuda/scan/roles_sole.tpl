// The warps of a team's block, without groups: one copies tiles in parts, and the others share each
// look-back. The copy of the first tile begins before anything else. Quotients are kernel
// arguments, which take no registers. team_source.go fills in words in capitals that are not
// constants.
extern "C" __global__ void __launch_bounds__(LAUNCHED, 1)
NAME(int steps, int batch, int hidden, int chains, int tiles, int regular, int apart, int period, int times, int over, word* ticket, word* sums, unsigned* statusMATRICES) {
  DYNAMIC_SHARED(memory);
NEXT
  grid g = {steps, batch, hidden, chains, tiles, regular, 1, period, sums, sums, status, times, over, apart, tiles};
  unsigned char* const staged = memory + PLACES * BUFFER;
  float* const starts = (float*)(staged + STAGED);
  several* const rows = (several*)(starts + STATES * VALUES);
  float* const walked = (float*)(rows + 2 * ROWS * LANES);
  linear* const parts = (linear*)(walked + (period * VALUES + 1) / 2 * 2);
  int* const second = (int*)(parts + SHARES * VALUES);
  const shared_t full = shared_address(second + 2), empty = full + 8 * PLACES * PARTS;
  const int me = threadIdx.x - THREADS;
  auto copy = [&](const turn& ahead, int slot, int part) {
FETCH
  };
  if (me == 0) {
    for (int i = 0; i < PLACES * PARTS; i++) bar_init(full + 8 * i, 1);
    for (int i = 0; i < PLACES; i++) bar_init(empty + 8 * i, ROWS);
    bar_publish();
    *second = 0;
    wait_previous();
    for (int part = 0; part < PARTS; part++) copy(g.begin(), 0, part);
  }
  wait_previous();
  g.run = (get_staying(ticket) >> 32) + 1;
  __syncthreads();
  count_block(ticket);
  if (me >= 0) {
FEWER
    if (me >= 32) seek_together(g, me / 32 - 1, starts, walked, parts, second);
    if (me > 0) return;
    turn ahead = g.begin();
    g.next(ahead);
    for (int i = 1, slot = 1; g.there(ahead); g.next(ahead), i++, slot = slot + 1 == PLACES ? 0 : slot + 1) {
      if (i >= PLACES) await(empty + 8 * slot, i / PLACES - 1);
      const int before = (i - 1) % PLACES * PARTS;
      for (int part = 0; part < PARTS; part++) {
        await(full + 8 * (before + part), (i - 1) / PLACES);
        copy(ahead, slot, part);
      }
      if (i == 2) put_here(second, 1);
    }
    return;
  }
MORE
