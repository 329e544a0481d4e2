package oracle

import "rnnbench/internal/parallel"

// mulTransposed sets out (m×n) to a (m×k) times the transpose of w (n×k).
func mulTransposed[F float32 | float64](out, a []F, w []float32, m, n, k int) {
	parallel.Share((n+3)/4, 2*float64(m)*float64(n)*float64(k), func(task int) {
		j := 4 * task
		if j+4 > n {
			for ; j < n; j++ {
				for i := range m {
					var sum F
					for q, v := range a[i*k : (i+1)*k] {
						sum += v * F(w[j*k+q])
					}
					out[i*n+j] = sum
				}
			}
			return
		}
		w0, w1, w2, w3 := four(w[j*k:], k)
		for i := range m {
			var s0, s1, s2, s3 F
			x := a[i*k : (i+1)*k]
			for q := range w0 {
				v := x[q]
				s0 += v * F(w0[q])
				s1 += v * F(w1[q])
				s2 += v * F(w2[q])
				s3 += v * F(w3[q])
			}
			out[i*n+j], out[i*n+j+1], out[i*n+j+2], out[i*n+j+3] = s0, s1, s2, s3
		}
	})
}

// four returns the first four rows of v. Each has cols columns, in a form from which the compiler
// sees that their lengths are equal.
func four[F float32 | float64](v []F, cols int) (v0, v1, v2, v3 []F) {
	v0 = v[:cols]
	return v0, v[cols:][:len(v0)], v[2*cols:][:len(v0)], v[3*cols:][:len(v0)]
}

// mul adds a (m×n) times w (n×k) to out (m×k).
func mul[F float32 | float64](out, a []F, w []float32, m, n, k int) {
	const band, block = 64, 64 // columns and rows of one task
	bands := (k + band - 1) / band
	parallel.Share(bands*((m+block-1)/block), 2*float64(m)*float64(n)*float64(k), func(task int) {
		lo, top := task%bands*band, task/bands*block
		hi := min(lo+band, k)
		for i := top; i < min(top+block, m); i++ {
			o := out[i*k+lo : i*k+hi]
			j := 0
			for ; j+4 <= n; j += 4 {
				f0, f1, f2, f3 := a[i*n+j], a[i*n+j+1], a[i*n+j+2], a[i*n+j+3]
				w0, w1, w2, w3 := w[j*k+lo:][:len(o)], w[(j+1)*k+lo:][:len(o)], w[(j+2)*k+lo:][:len(o)], w[(j+3)*k+lo:][:len(o)]
				for q := range o {
					o[q] = o[q] + f0*F(w0[q]) + f1*F(w1[q]) + f2*F(w2[q]) + f3*F(w3[q])
				}
			}
			for ; j < n; j++ {
				f := a[i*n+j]
				for q, v := range w[j*k+lo : j*k+hi] {
					o[q] += f * F(v)
				}
			}
		}
	})
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
