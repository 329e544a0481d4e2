package diamos

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// narrowInput is an input so narrow that the recurrent product is nearly all of a step: the paper's
// kernels and rates are of that product alone. No technique leaves the input product out, and a
// difference of two times would have the noise of both.
const narrowInput = 16

// narrowed are points with that input.
func narrowed(points []record.Point) []record.Point {
	for i := range points {
		points[i].Input = narrowInput
	}
	return points
}

// Labels of the forms of Figure 3.
const (
	onTensorCores = "persistent, tensor cores"
	largeLayer    = "cudnnstyle, large layer" // of the size at which the paper finds products efficient
)

// The forms of a persistent layer, of rnnbench's products and of the library's. The fastest counts.
func persistentForms() []string { return []string{"persistent", onTensorCores} }

func productForms() []string { return []string{"cudnnstyle", "cudnnstyle, graph"} }

func libraryForms() []string { return []string{"cudnnstyle, cuBLAS", "cudnnstyle, cuBLAS, graph"} }

// tensorSpec is a persistent layer on tensor cores, whatever the cell. Halves hold states up to 65504,
// and those of rnn-relu may grow, so by default its layers in fp32 do without tensor cores.
func tensorSpec(packed int) grid.Spec {
	return study.Spec(onTensorCores, "persistent", knob.Params{"transposed": packed, "tensor": 1})
}

// Fig3 is the experiment diamos-fig3.
var Fig3 = study.Experiment{
	ID: "diamos-fig3", Title: "Persistent layer versus matrix products over minibatch, forward pass",
	Source: "Diamos et al. 2016, Figure 3",
	Unlike: "the recurrent product alone has an input of 16 features, not none",
	Parts: func(s study.Size, on study.Target) []study.Part {
		p := diamosLayer(s)
		batch := []int{1, 2, 4, 8, 16, 32, 64}
		specs := []grid.Spec{persistentSpec("persistent", 2), form.GemmSpec("cudnnstyle", 2)}
		library := form.ByLibrary("cudnnstyle, cuBLAS", form.GemmSpec("", 2))
		gpu := append([]grid.Spec{tensorSpec(2), library, study.Graphed("cudnnstyle, cuBLAS, graph", library), study.Graphed("cudnnstyle, graph", form.GemmSpec("", 2))}, form.Yardsticks(s)...)
		wide := []grid.Spec{form.GemmSpec(largeLayer, 2)}
		return []study.Part{
			{Points: study.Product(p, []int{p.Hidden}, batch), Specs: on.WithGPU(specs, gpu...)},
			{Points: study.Product(p, []int{large(s)}, batch), Specs: wide},
			{Points: narrowed(study.Product(p, []int{p.Hidden}, batch)), Specs: on.WithGPU(specs, gpu...)},
			{Points: narrowed(study.Product(p, []int{large(s)}, batch)), Specs: wide},
		}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		whole := fig3Of(pick.Where(recs, func(p record.Point) bool { return p.Input == p.Hidden }))
		alone := fig3Of(pick.Where(recs, func(p record.Point) bool { return p.Input != p.Hidden }))
		if whole.hidden == 0 && alone.hidden == 0 {
			return nil, fmt.Errorf("experiments: no records of the persistent technique")
		}
		whole.show(rep, on, "diamos-fig3", "")
		alone.show(rep, on, "diamos-fig3-recurrent", ", the recurrent product alone")
		first := alone // the paper's rates are probably of this
		if first.hidden == 0 {
			first = whole
		}
		first.findings(rep, on)
		fig3Claims(rep, on, first)
		if a, b := whole.at[4].over(), alone.at[4].over(); a.Known() && b.Known() {
			rep.Findings = append(rep.Findings, fmt.Sprintf("At minibatch 4, the persistent layer is %s as fast as rnnbench's products with the input product, and %s without it. Without it, the input has %d features; their product is %.1f %% of the work.",
				a.Times(), b.Times(), narrowInput, 100*narrowInput/float64(narrowInput+alone.hidden)))
		}
		return rep, nil
	},
}

// What the text of sections 4 and 5.1.1 prints of a layer of 1152 units, in FLOP/s. The peak is the
// TitanX's.
const (
	paperPersistent = 2.8e12   // from minibatch 4 on
	paperProducts4  = 0.099e12 // Nervana's library, minibatch 4
	paperProducts64 = 1.5e12   // minibatch 64
	paperPeak       = 6.144e12
)

// paperOver is the paper's speed-up of the persistent layer over products, by minibatch.
var paperOver = map[int]float64{4: paperPersistent / paperProducts4, 64: paperPersistent / paperProducts64}

// A fig3Row is a minibatch with its records; nil: missing. Each is of the fastest form.
type fig3Row struct{ persistent, products, large, library, vendor *record.Record }

// over is how many times as fast the persistent layer is as rnnbench's products.
func (f fig3Row) over() estimate.Estimate { return estimate.TimesAsFast(f.products, f.persistent) }

// rival returns the products that the paper's are like: a library's. Where none were measured, they
// are rnnbench's own.
func (f fig3Row) rival() (r *record.Record, name string) {
	if f.library != nil {
		return f.library, "cuBLAS"
	}
	return f.products, "products"
}

// A fig3 is the figure with the input product, or with hardly any.
type fig3 struct {
	recs   []record.Record
	hidden int // units of the persistent layer; 0: there is none
	at     map[int]fig3Row
	order  []int // minibatches with a persistent layer
	top    int   // minibatch with the persistent layer's highest throughput
}

func fig3Of(recs []record.Record) fig3 {
	f := fig3{recs: recs, at: map[int]fig3Row{}}
	most := 0.0
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		r := pick.Fastest(recs, persistentForms(), here)
		if r == nil {
			continue
		}
		f.hidden = p.Hidden
		f.order = append(f.order, p.Batch)
		f.at[p.Batch] = fig3Row{r, pick.Fastest(recs, productForms(), here), pick.Find(recs, largeLayer, func(q record.Point) bool { return q.Batch == p.Batch }),
			pick.Fastest(recs, libraryForms(), here), pick.Fastest(recs, form.VendorLabels(), here)}
		if v := r.FLOPS(); v > most {
			most, f.top = v, p.Batch
		}
	}
	return f
}

// show adds the table and the figure; nothing where the layer was not measured.
func (f fig3) show(rep *study.Report, on study.Target, name, what string) {
	if f.hidden == 0 {
		return
	}
	t := &table.Table{Title: fmt.Sprintf("Diamos Figure 3: forward, one gate, %d units%s", f.hidden, what), Columns: []table.Column{
		{Name: "B", Key: "batch", Right: true}, {Name: "persistent", Key: "persistent_flops_per_s", Right: true},
		{Name: "products", Key: "gemm_flops_per_s", Right: true}, {Name: "products, large layer", Key: "large_flops_per_s", Right: true},
		{Name: "× products", Key: "speedup", Right: true}, {Name: "Paper, ×", Key: "paper_speedup", Right: true},
	}}
	if on.GPU {
		t.Columns = append(t.Columns, show.Column("products by cuBLAS", "cublas_flops_per_s"), show.Column("× cuBLAS", "cublas_speedup"), show.Column("cuDNN", "cudnn_flops_per_s"), show.Column("× cuDNN", "cudnn_speedup"))
		t.Notes = []string{"each column has the fastest measured form: persistent with and without tensor cores, products launched and as a graph"}
	}
	for _, b := range f.order {
		r := f.at[b]
		times := func(rival *record.Record) table.Cell {
			return show.Ratio(estimate.TimesAsFast(rival, r.persistent).At)
		}
		persistent, _ := show.Rate(r.persistent)
		products, _ := show.Rate(r.products)
		wide, _ := show.Rate(r.large)
		want := math.NaN()
		if v, ok := paperOver[b]; ok {
			want = v
		}
		row := []table.Cell{table.Int(b), persistent, products, wide, times(r.products), show.Number(want, "%.1f")}
		if on.GPU {
			library, _ := show.Rate(r.library)
			vendor, _ := show.Rate(r.vendor)
			row = append(row, library, times(r.library), vendor, times(r.vendor))
		}
		t.Rows = append(t.Rows, row)
	}
	rep.Tables = append(rep.Tables, t)
	fig, err := plots.Lines(form.FastestForms(f.recs), plots.Spec{X: "batch", Machine: on.Name, Title: "Diamos Figure 3: forward, persistent versus products" + what})
	if err == nil {
		fig.Panels[0].Series = append(fig.Panels[0].Series,
			plots.Series{Label: "paper: persistent", Reference: true, Scatter: true, Points: []plots.Point{{X: 4, Y: paperPersistent}}},
			plots.Series{Label: "paper: products", Reference: true, Scatter: true, Points: []plots.Point{{X: 4, Y: paperProducts4}, {X: 64, Y: paperProducts64}}})
		plots.Note(fig, "The paper's marks are rates that its text prints, on a TitanX of 6.144 TFLOP/s.")
	}
	rep.Add(name, fig, err)
}

func (f fig3) findings(rep *study.Report, on study.Target) {
	four := f.at[4]
	if e := four.over(); e.Known() {
		rep.Findings = append(rep.Findings, fmt.Sprintf("At minibatch 4, the persistent layer is %s as fast as rnnbench's own matrix products; the paper reports 28× over products of Nervana's library.%s", e.Times(), losses(e, paperOver[4], on)))
	}
	if e := estimate.TimesAsFast(four.library, four.persistent); e.Known() {
		rep.Findings = append(rep.Findings, fmt.Sprintf("The paper also compares with NVIDIA's library. At minibatch 4, the persistent layer here is %s as fast as products by cuBLAS.", e.Times()))
	}
	if s := f.tensorFinding(); s != "" {
		rep.Findings = append(rep.Findings, s)
	}
	if on.GPU {
		rep.Findings = append(rep.Findings, form.VendorFinding(f.recs, "persistent"))
	}
	s := fmt.Sprintf("The persistent layer's throughput peaks at minibatch %d here; the paper reaches 2.8 TFLOP/s at minibatch 4. The paper's rates probably count the recurrent product alone.", f.top)
	if f.recs[0].Point.Input == f.hidden {
		s += " Ours also count the input product, which is one large product in both."
	}
	rep.Findings = append(rep.Findings, s)
}

// tensorFinding compares the fastest forms at minibatch 64, and says if the persistent layer had no
// tensor cores; "" without records.
func (f fig3) tensorFinding() string {
	row := f.at[64]
	e := row.over()
	if !e.Known() {
		return ""
	}
	s := fmt.Sprintf("At minibatch 64, the fastest form of the persistent layer is %s as fast as that of rnnbench's products.", e.Times())
	simt := slices.ContainsFunc(row.persistent.Kernels, func(k record.Kernel) bool { return k.Variant != nil && *k.Variant == "simt" })
	switch tried := pick.Find(f.recs, onTensorCores, func(p record.Point) bool { return p == row.persistent.Point }); {
	case !simt || tried != nil:
	case slices.ContainsFunc(f.recs, func(r record.Record) bool { return r.Impl.Label == onTensorCores }):
		s += " The form on tensor cores has no result there."
	default:
		s += " It ran without tensor cores, since states of rnn-relu may outgrow halves. These records lack the form that asks for tensor cores, so this is not the technique at its best."
	}
	return s
}

// losses returns sentences on why products are slower than the persistent layer, and why the factor
// is below the paper's.
func losses(times estimate.Estimate, paper float64, on study.Target) (why string) {
	if estimate.Clearly(times.At) {
		why = " Products lose time to start-up and to rereading the weights at each step; the shares were not measured."
	}
	if times.At < paper && !on.GPU {
		why += " On a CPU, an operation starts in a fraction of a microsecond. Each core computes the same share of a product at every step, so its private cache can also hold the weights for products."
	}
	return why
}
