package lower

// A Dispatch is the measured cost of launches on this device: the seconds from one empty kernel to
// the next.
type Dispatch struct {
	Host  float64 // launched one by one by the host
	Graph float64 // as nodes of a graph
}

// fitted is the dispatch of the H200 on which the constants of costs were fitted.
var fitted = Dispatch{Host: 2.92e-6, Graph: 0.55e-6}

// launchCosts are what commands cost beyond their work, in seconds.
type launchCosts struct {
	pointwise, early float64 // a kernel after another, and one that overlaps its end
	crossing         float64 // until a stream sees another stream's event
	launch, product  float64 // the host's time for a launch, and for a product by the library
	graph, start     float64 // the host's time for a graph, and until the first launch runs
}

// costs scales the fitted constants by the dispatch measured here. A field of 0 was not measured.
func (d Dispatch) costs() launchCosts {
	host, gpu := ratio(d.Host, fitted.Host), ratio(d.Graph, fitted.Graph)
	return launchCosts{
		pointwise: 1.3e-6 * gpu, early: 0.7e-6 * gpu, crossing: 1.5e-6 * gpu,
		launch: 2.4e-6 * host, product: 4e-6 * host, graph: 3e-6 * host, start: 6e-6 * host,
	}
}

// ratio is how many times as long a launch takes here. The bounds limit the effect of a disturbed
// measurement.
func ratio(here, there float64) float64 {
	if here <= 0 {
		return 1
	}
	return min(max(here/there, 0.25), 8)
}
