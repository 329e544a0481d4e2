package cell

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// recurrences are the cells, and parts of cells, whose steps compose.
func recurrences() []*Cell {
	all := []*Cell{Linear}
	for _, c := range All() {
		for _, c := range []*Cell{c, c.Surrogate, c.Core, c.Scanned} {
			if c != nil && c.Recurrence != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

func TestWhatComposes(t *testing.T) {
	want := map[string]string{
		"rnn-tanh": "[]", "rnn-relu": "[]", "gru": "[0]", "lstm": "[1]", // given their products
		"gilr": "[0]", "sru": "[1]", "qrnn": "[1]", "ls-lstm": "[1 2]", "mingru": "[0]", "rg-lru": "",
	}
	for _, c := range All() {
		got := ""
		if c.Recurrence != nil {
			got = fmt.Sprint(c.Recurrence.Carried)
		}
		if w, ok := want[c.Name]; ok && got != w || !ok && c.Name == "lstm-peephole" && got != "" {
			t.Errorf("%v carries %s, want %s", c, got, w)
		}
		if scanned := c.Scanned != nil; scanned != (c.Name == "rg-lru") {
			t.Errorf("%v has a form for scans: %v", c, scanned)
		}
		if split := c.Surrogate != nil; split != (c.Name == "ls-lstm") {
			t.Errorf("%v has a surrogate: %v", c, split)
		}
	}
}

// TestStepsCompose runs several steps in place and composes the same steps.
func TestStepsCompose(t *testing.T) {
	const steps = 7
	for _, c := range recurrences() {
		rec := c.Recurrence
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var before, after []float64
			forward, chunk := unit{}, unit{}
			back, backChunk := unit{}, unit{}
			for _, s := range rec.Carried {
				h := rng.Float64()
				before = append(before, h)
				*forward.at(Ref{Prev, s}), *back.at(Ref{DNext, s}) = h, h
				*chunk.at(Ref{Factor, s}), *backChunk.at(Ref{Factor, s}) = 1, 1
			}
			for range steps {
				in := random(c, rng)
				for ref, v := range in {
					switch {
					case ref.Kind != Prev:
						*forward.at(ref), *chunk.at(ref) = *v, *v
					case c.DirectPrev(ref.Index): // any states will do, but the same
						*back.at(ref), *backChunk.at(ref) = *v, *v
					}
				}
				for s := range c.States {
					v := rng.Float64()
					*back.at(Ref{Next, s}), *backChunk.at(Ref{Next, s}) = v, v
				}
				for k := range c.Saved {
					v := rng.Float64()
					*back.at(Ref{Saved, k}), *backChunk.at(Ref{Saved, k}) = v, v
				}
				for s := range c.States {
					if !c.DirectPrev(s) {
						v := *in.at(Ref{DNext, s})
						*back.at(Ref{DNext, s}), *backChunk.at(Ref{DNext, s}) = v, v
					}
				}
				*back.at(Ref{DOut, 0}), *backChunk.at(Ref{DOut, 0}) = *in.at(Ref{DOut, 0}), *in.at(Ref{DOut, 0})
				rec.Forward.Eval(forward.at)
				rec.Compose.Eval(chunk.at)
				rec.Backward.Eval(back.at)
				rec.ComposeBackward.Eval(backChunk.at)
			}
			for i, s := range rec.Carried {
				for _, k := range []struct {
					kind        Kind
					steps, once unit
				}{{Prev, forward, chunk}, {DNext, back, backChunk}} {
					after = append(after, *k.steps.at(Ref{k.kind, s}))
					got := *k.once.at(Ref{Factor, s})*before[i] + *k.once.at(Ref{k.kind, s})
					if want := *k.steps.at(Ref{k.kind, s}); math.Abs(got-want) > 1e-13*(1+math.Abs(want)) {
						t.Fatalf("%v: %v composes to %v, want %v", c, Ref{k.kind, s}, got, want)
					}
				}
			}
			if len(after) != 2*len(rec.Carried) {
				t.Fatal("nothing compared")
			}
		}
	}
}

// TestSurrogateAndCoreAreTheCell compares the two parts with the whole, forward and backward.
func TestSurrogateAndCoreAreTheCell(t *testing.T) {
	for _, c := range All() {
		if c.Surrogate == nil {
			continue
		}
		for seed := range uint64(20) {
			u := random(c, rand.New(rand.NewPCG(seed, 4)))
			sur, core := unit{}, unit{}
			saved := c.Surrogate.Saved
			share := func(kind Kind, i int) { // where both keep the whole's vector
				v := u.at(Ref{kind, i})
				switch kind {
				case X, BX, DX:
					if i >= c.Recurrent {
						sur[Ref{kind, i - c.Recurrent}] = v
					} else {
						core[Ref{kind, i}] = v
					}
				case Saved:
					if i < saved {
						sur[Ref{kind, i}] = v
					} else {
						core[Ref{kind, i - saved}] = v
					}
				default: // states
					if i == c.Through {
						sur[Ref{kind, 0}] = v
					} else {
						core[Ref{kind, i - min(1, i/(c.Through+1))}] = v
					}
				}
			}
			c.Forward.Eval(u.at)
			c.Backward.Eval(u.at)
			want := unit{}
			for ref, v := range u {
				*want.at(ref) = *v
			}
			for g := range c.Gates {
				share(X, g)
				share(BX, g)
				*u.at(Ref{DX, g}) = 0
				share(DX, g)
				if g < c.Recurrent {
					core[Ref{R, g}], core[Ref{BR, g}] = u.at(Ref{R, g}), u.at(Ref{BR, g})
				}
			}
			for i := range c.Saved {
				*u.at(Ref{Saved, i}) = 0
				share(Saved, i)
			}
			for s := range c.States {
				*u.at(Ref{Next, s}) = 0
				for _, k := range []Kind{Prev, Next, DNext} {
					share(k, s)
				}
				if c.DirectPrev(s) {
					*u.at(Ref{DPrev, s}) = 0
					share(DPrev, s)
				}
			}
			core[Ref{DOut, 0}] = u.at(Ref{DOut, 0})
			c.Surrogate.Forward.Eval(sur.at)
			c.Core.Forward.Eval(core.at)
			c.Surrogate.Backward.Eval(sur.at)
			c.Core.Backward.Eval(core.at)
			for ref, v := range want {
				if ref.Kind != Temp && *u.at(ref) != *v {
					t.Fatalf("%v: %v is %v in parts, %v in one", c, ref, *u.at(ref), *v)
				}
			}
		}
	}
}

func ExampleRecurrence() {
	for _, in := range GILR.Recurrence.Compose {
		fmt.Println(in)
	}
	// Output:
	// t0 = add x0 bx0
	// t0 = sigmoid t0
	// t1 = add x1 bx1
	// t1 = tanh t1
	// t2 = mul t0 prev0
	// t3 = mul factor0 t0
	// t0 = oneminus t0
	// t1 = mul t0 t1
	// t1 = add t2 t1
	// prev0 = copy t1
	// factor0 = copy t3
}

// TestChain counts the operations from a state to the next: h' = g∘h + (1-g)∘i has two, and
// everything else of a gilr is from the inputs. A state that a step overwrites has no chain.
func TestChain(t *testing.T) {
	one := func(op Op) float64 { return map[bool]float64{true: 0, false: 1}[op == Copy] }
	r := GILR.Serial
	if got := r.Chain(r.Inference, one); got != 2 {
		t.Errorf("forward: %v operations, want a product and a sum", got)
	}
	if got := r.Chain(r.Backward, one); got != 2 {
		t.Errorf("backward: %v operations, want a sum and a product", got)
	}
	if got := r.Chain(Program{{Op: Sigmoid, Out: Ref{Prev, 0}, A: Ref{X, 0}}}, one); got != 0 {
		t.Errorf("a state from inputs alone: %v", got)
	}
}
