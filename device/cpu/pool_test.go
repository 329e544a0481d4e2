package cpu

import "testing"

// BenchmarkMeeting measures how fast two workers signal each other. By spinning it takes one
// signal, as in a step of a persistent operation, or two, out and back, as in dispatching a step.
// Channels wake a sleeping goroutine.
func BenchmarkMeeting(b *testing.B) {
	p := newPool(2, hostTopology(), false)
	defer p.close()
	both := func(b *testing.B, first, second func()) {
		if err := p.do(func(w int) { []func(){first, second}[w]() }); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("meet", func(b *testing.B) {
		c := p.barrier(2, 0, 2)
		meet := func(w int) func() {
			return func() {
				for range b.N {
					p.meet(c, w, 2)
				}
			}
		}
		both(b, meet(0), meet(1))
	})
	b.Run("dispatch", func(b *testing.B) {
		var order, done counter
		both(b, func() {
			for i := range b.N {
				order.Add(1)
				p.await(&done, uint64(i)+1)
			}
		}, func() {
			for i := range b.N {
				p.await(&order, uint64(i)+1)
				done.Add(1)
			}
		})
	})
	b.Run("channel", func(b *testing.B) {
		out, back := make(chan int), make(chan int)
		both(b, func() {
			for i := range b.N {
				out <- i
				<-back
			}
		}, func() {
			for range b.N {
				back <- <-out
			}
		})
	})
}
