package rnn

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Convolutions over time and features lie in front of the recurrent layers, as in Deep Speech 2 (Amodei et al.
// 2015, section 3.5) and Diamos et al. (2016). Each reads several channels of features, at first one, and gives
// Channels of Wide features at as many steps:
//
//	out[t, f, c] = min(max(b[c] + Σ w[c, i, j, k] · in[t+i-⌊(Steps-1)/2⌋, f·Stride+j-left, k], 0), MostDense)
//
// over i below Steps, j below Features and all channels k of the input. Outside of its steps and features the
// input is 0. Features at both ends are padded alike, so there are ⌈features/Stride⌉ of them behind.
//
// No patches of the input are stored. What one step of the kernel reads for neighbouring output features lies side
// by side in a row of the padded input, and steps are bands of rows. So each step of the kernel and each group of
// output features is a product over all steps and sequences. Its weights are copied for each feature of a group,
// one stride apart, with 0 between: products are larger then, and at most about twice as many where kernels are.
//
// Techniques know nothing of them. They are composed, and see recurrent layers alone.

// A Convolution is one of the convolutions of a problem.
type Convolution struct {
	Channels, Steps, Features, Stride int

	From int // channels of the input
	Over int // features of the input
	Wide int // features of the output
}

// Cols is the number of values that the convolution gives at a step: channel after channel at each feature.
func (c Convolution) Cols() int { return c.Wide * c.Channels }

// Taps is the number of weights of a channel for one step of the kernel.
func (c Convolution) Taps() int { return c.Features * c.From }

// Padded is the number of features of the padded input, and how many of them lie in front of the input's.
func (c Convolution) Padded() (features, left int) {
	features = max(c.Over, (c.Wide-1)*c.Stride+c.Features)
	return features, (features - c.Over) / 2
}

// together is how many output features a product forms: so many that they read about twice as many features as one
// does, and at least 64 values.
func (c Convolution) together() int {
	const least = 64
	return min(c.Wide, max((c.Features+c.Stride-1)/c.Stride, (least+c.Channels-1)/c.Channels))
}

// reach is the number of values of a step that n neighbouring output features read.
func (c Convolution) reach(n int) int { return ((n-1)*c.Stride + c.Features) * c.From }

// Earlier is the number of steps before the present one that the kernel reads.
func (c Convolution) Earlier() int { return (c.Steps - 1) / 2 }

const (
	mostConvolutions = 8
	mostKernel       = 1 << 10 // channels, steps or features of a kernel
	mostConvolved    = 1 << 12 // features of the input
)

var convolutionForm = regexp.MustCompile(`^([0-9]{1,4})x([0-9]{1,4})x([0-9]{1,4})(?:/([0-9]{1,4}))?$`)

// Convolutions lists those of p, from the input on. Its text names channels, steps and features of each, and
// the stride over features if it is not 1: 32x5x11/2+32x5x11.
func Convolutions(p Problem) ([]Convolution, error) {
	if p.Conv == "" {
		return nil, nil
	}
	var all []Convolution
	from, over := 1, p.Input
	for one := range strings.SplitSeq(p.Conv, "+") {
		m := convolutionForm.FindStringSubmatch(one)
		if m == nil {
			return nil, fmt.Errorf("rnn: conv is %.60q: write CHANNELSxSTEPSxFEATURES of each convolution, and /STRIDE over features, such as 32x5x11/2+32x5x11", p.Conv)
		}
		c := Convolution{Stride: 1, From: from, Over: over}
		for i, n := range []*int{&c.Channels, &c.Steps, &c.Features, &c.Stride} {
			if m[i+1] == "" {
				continue
			}
			if *n, _ = strconv.Atoi(m[i+1]); *n < 1 || *n > mostKernel {
				return nil, fmt.Errorf("rnn: conv is %.60q: its numbers must be 1 to %d", p.Conv, mostKernel)
			}
		}
		c.Wide = (over + c.Stride - 1) / c.Stride
		all = append(all, c)
		from, over = c.Channels, c.Wide
	}
	if len(all) > mostConvolutions || p.Input > mostConvolved {
		return nil, fmt.Errorf("rnn: there are %d convolutions of %d input features: at most %d may be in front, of %d", len(all), p.Input, mostConvolutions, mostConvolved)
	}
	return all, nil
}

// convolved is the number of features that the convolutions give to the first recurrent layer.
func convolved(p Problem) int {
	all, err := Convolutions(p)
	if err != nil || all == nil {
		return p.Input
	}
	return all[len(all)-1].Cols()
}

// checkConv reports invalid convolutions, and settings that do not go with them.
func checkConv(p Problem) error {
	if _, err := Convolutions(p); err != nil {
		return err
	}
	if p.Conv != "" && (p.OneHot || p.Symbols > 0) {
		return fmt.Errorf("rnn: convolutions read features, not symbols: set onehot to false and symbols to none, or conv to none")
	}
	return nil
}

// declineConv says why p's network cannot have convolutions in front.
func declineConv(p Problem) error {
	if p.Conv != "" && (p.Lengths != "" || p.History > 0 || p.Resets > 0 || p.Calls > 0) {
		return fmt.Errorf("%w: convolutions read steps before and after the present one, so conv goes with no lengths, history, resets and calls: set these to none, or conv", schedule.ErrInput)
	}
	return nil
}

// convolutionFLOPs is the number of operations of all convolutions for a step of a sequence. Gradients are
// those of the weights and, behind the first convolution, those of the input.
func convolutionFLOPs(p Problem) (flops float64) {
	all, _ := Convolutions(p)
	for i, c := range all {
		times := 1.0
		if p.Pass == Train {
			times += float64(min(i+1, 2))
		}
		flops += 2 * times * float64(c.Cols()) * float64(c.Steps*c.Taps())
	}
	return flops
}

// A ConvolutionLayer is a convolution of a plan. A row of W has the taps of a channel for each step of the kernel.
type ConvolutionLayer struct {
	Convolution
	W, DW *schedule.Matrix // Channels × Steps·Taps; DW where training
	B, DB *schedule.Matrix // 1 × Channels
	Out   *schedule.Matrix // T·B × Cols

	d       *schedule.Matrix // gradient of the sums, as Out, where training
	in, din *schedule.Matrix // the padded input, (T + Steps - 1)·B rows; din its gradient, where training behind another
	row     *schedule.Matrix // 1 × Cols: biases, or their gradients, of each feature
	most    *schedule.Matrix // 1 × Cols: MostDense

	wide, dwide *schedule.Matrix // W for each of the output features together, and its gradient where training
	sum         *schedule.Matrix // as Out
	room        *schedule.Matrix // scratch, as Out
}

// newConvolutions makes the matrices of the convolutions of a plan with so many rows.
func newConvolutions(p *Plan, rows int) (layers []*ConvolutionLayer) {
	all, _ := Convolutions(p.Problem) // Check has found no error
	train := p.Pass == Train
	for i, c := range all {
		name := func(s string) string { return fmt.Sprintf("%s of convolution %d", s, i) }
		features, _ := c.Padded()
		high, wide := rows+(c.Steps-1)*p.Batch, features*c.From
		y := &ConvolutionLayer{
			Convolution: c,
			W:           p.Matrix(name("W"), c.Channels, c.Steps*c.Taps()), DW: matrixIf(p, train, name("dW"), c.Channels, c.Steps*c.Taps()),
			B: p.Matrix(name("b"), 1, c.Channels), DB: matrixIf(p, train, name("db"), 1, c.Channels),
			Out: p.Matrix(name("y"), rows, c.Cols()), d: matrixIf(p, train, name("dsum"), rows, c.Cols()),
			in: p.Matrix(name("x"), high, wide), din: matrixIf(p, train && i > 0, name("dx"), high, wide),
			row: p.Matrix(name("row"), 1, c.Cols()), most: p.Matrix(name("most"), 1, c.Cols()),
			wide:  p.Matrix(name("wide W"), c.together()*c.Channels, c.Steps*c.reach(c.together())),
			dwide: matrixIf(p, train, name("wide dW"), c.together()*c.Channels, c.Steps*c.reach(c.together())),
			sum:   p.Matrix(name("sum"), rows, c.Cols()), room: p.Scratch(name("room"), rows, c.Cols()),
		}
		p.Prepare(schedule.Map{Op: cell.Zero, Out: y.in.All()})
		p.Prepare(schedule.Map{Op: cell.Zero, Out: y.wide.All()})
		p.Prepare(schedule.Map{Op: cell.Const, Out: y.most.All(), Value: MostDense})
		layers = append(layers, y)
	}
	return layers
}

// batch is the number of rows of a step; 0 where the kernel has one.
func (y *ConvolutionLayer) batch() int {
	return (y.in.Rows - y.Out.Rows) / max(1, y.Convolution.Steps-1)
}

// inside is the part of a padded input, or of its gradient, that is not padding.
func (y *ConvolutionLayer) inside(m *schedule.Matrix) schedule.View {
	_, left := y.Padded()
	return m.Band(y.Earlier()*y.batch(), y.Out.Rows).Columns(left*y.From, y.Over*y.From)
}

// columns are the part of a matrix like Out that belongs to n output features from f on.
func (y *ConvolutionLayer) columns(m *schedule.Matrix, f, n int) schedule.View {
	return m.All().Columns(f*y.Channels, n*y.Channels)
}

// patches are what step i of the kernel reads for n output features from f on, in a matrix like the padded input.
func (y *ConvolutionLayer) patches(m *schedule.Matrix, i, f, n int) schedule.View {
	return m.Band(i*y.batch(), y.Out.Rows).Columns(f*y.Stride*y.From, y.reach(n))
}

// spread is the part of a matrix like Wide that n output features have for step i of the kernel.
func (y *ConvolutionLayer) spread(m *schedule.Matrix, i, n int) schedule.View {
	return m.Band(0, n*y.Channels).Columns(i*y.reach(y.together()), y.reach(n))
}

// copies visits the copies of each step's taps in a matrix like wide, which lie at different features.
func (y *ConvolutionLayer) copies(w, wide *schedule.Matrix, visit func(first bool, taps, copied schedule.View)) {
	n, taps := y.together(), y.Taps()
	for i := range y.Convolution.Steps {
		for f := range n {
			visit(f == 0, w.All().Columns(i*taps, taps), wide.Band(f*y.Channels, y.Channels).Columns(i*y.reach(n)+f*y.Stride*y.From, taps))
		}
	}
}

// groups visits the output features, so many at once, with each step of the kernel.
func (y *ConvolutionLayer) groups(visit func(i, f, n int)) {
	for f := 0; f < y.Wide; f += y.together() {
		for i := range y.Convolution.Steps {
			visit(i, f, min(y.together(), y.Wide-f))
		}
	}
}

// forward runs the convolution of x.
func (y *ConvolutionLayer) forward(p *Plan, x schedule.View) {
	p.Do(0, schedule.Map{Op: cell.Copy, Out: y.inside(y.in), A: x})
	y.copies(y.W, y.wide, func(_ bool, taps, copied schedule.View) {
		p.Do(0, schedule.Map{Op: cell.Copy, Out: copied, A: taps})
	})
	for f := range y.Wide {
		p.Do(0, schedule.Map{Op: cell.Copy, Out: y.columns(y.row, f, 1), A: y.B.All()})
	}
	y.groups(func(i, f, n int) {
		p.Do(0, schedule.Gemm{A: y.patches(y.in, i, f, n), B: y.spread(y.wide, i, n), TransB: true, C: y.columns(y.sum, f, n), Accumulate: i > 0})
	})
	sum, out, room := y.sum.All(), y.Out.All(), y.room.All()
	p.Do(0, schedule.MapChain{Steps: []schedule.Map{
		{Op: cell.Add, Out: sum, A: sum, B: y.row.All()},
		{Op: cell.ReLU, Out: sum, A: sum},
		{Op: cell.Sub, Out: room, A: sum, B: y.most.All()},
		{Op: cell.ReLU, Out: room, A: room},
		{Op: cell.Sub, Out: out, A: sum, B: room},
	}})
}

// backward forms the gradients of the weights and of the input from dout, that of Out.
func (y *ConvolutionLayer) backward(p *Plan, dout schedule.View) {
	d, room := y.d.All(), y.room.All()
	p.Do(0, schedule.MapChain{Steps: []schedule.Map{
		{Op: cell.Sub, Out: room, A: y.most.All(), B: y.Out.All()},
		{Op: cell.ReLUGrad, Out: d, A: dout, B: room},
		{Op: cell.ReLUGrad, Out: d, A: d, B: y.Out.All()},
	}})
	add := func(first bool, to, v schedule.View) {
		if first {
			p.Do(0, schedule.Map{Op: cell.Copy, Out: to, A: v})
		} else {
			p.Do(0, schedule.Map{Op: cell.Add, Out: to, A: to, B: v})
		}
	}
	p.Do(0, schedule.SumRows{A: d, Out: y.row.All()})
	for f := range y.Wide {
		add(f == 0, y.DB.All(), y.columns(y.row, f, 1))
	}
	y.groups(func(i, f, n int) {
		p.Do(0, schedule.Gemm{A: y.columns(y.d, f, n), TransA: true, B: y.patches(y.in, i, f, n), C: y.spread(y.dwide, i, n), Accumulate: f > 0})
	})
	y.copies(y.DW, y.dwide, add)
	if y.din == nil {
		return
	}
	p.Do(0, schedule.Map{Op: cell.Zero, Out: y.din.All()})
	y.groups(func(i, f, n int) {
		p.Do(0, schedule.Gemm{A: y.columns(y.d, f, n), B: y.spread(y.wide, i, n), C: y.patches(y.din, i, f, n), Accumulate: true})
	})
}

// convolve forms X by the convolutions, if there are any.
func convolve(p *Plan) {
	x := p.Given.All()
	for _, y := range p.Convolutions {
		y.forward(p, x)
		x = y.Out.All()
	}
}

// convolutionGradients forms the gradients of the convolutions from that of X.
func convolutionGradients(p *Plan) {
	if p.Pass != Train {
		return
	}
	for i := len(p.Convolutions) - 1; i >= 0; i-- {
		d := p.DX.All()
		if i < len(p.Convolutions)-1 {
			next := p.Convolutions[i+1]
			d = next.inside(next.din)
		}
		p.Convolutions[i].backward(p, d)
	}
}
