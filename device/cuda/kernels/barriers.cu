// barriers has all blocks meet count times.
extern "C" __global__ void __launch_bounds__(256) barriers(int count, unsigned* counter, unsigned* trouble) {
  DYNAMIC_SHARED(memory);
  for (int i = 1; i <= count; i++)
    if (!barrier(counter, i, (int*)memory, trouble)) return;
  finish(counter, count);
}
