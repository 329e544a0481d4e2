// rightpieces makes those of a right factor (pieces.cu).
extern "C" __global__ void __launch_bounds__(256) rightpieces(int terms, int columns, const float* from, long long term, long long column, quad* to, float* tail) {
  begin_next();
  wait_previous();
  right_pieces(terms, columns, from, term, column, to, tail, tail);
}
