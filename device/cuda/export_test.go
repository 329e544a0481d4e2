package cuda

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Sources are the texts of s's kernels with knobs k on a GPU of properties p.
func Sources(s *schedule.Schedule, k knob.Params, p Properties) ([]*Launch, []string, error) {
	l, err := newLayout(s, k, p, nil)
	if err != nil {
		return nil, nil, err
	}
	b := binder{knobs: k, layout: &l, properties: p, precision: s.Precision, sources: map[string]*source{}}
	var texts []string
	var launches []*Launch
	for _, n := range s.Nodes {
		steps, err := b.steps(n.Op, 0)
		if err != nil {
			return nil, nil, err
		}
		for _, step := range steps {
			if step.launch != nil {
				launches = append(launches, step.launch)
				texts = append(texts, Common()+step.source.text)
			}
		}
	}
	return launches, texts, nil
}

// Tilings are those of a layer in clusters, the cheapest first, as knobs and as
// text.
func Tilings(hidden, gates, batch int, k knob.Params, p Properties) (knobs []knob.Params, texts []string) {
	b := binder{knobs: k, properties: p}
	all, _ := b.tilings(hidden, gates, batch)
	for _, t := range all {
		k := knob.Params{"resident": 1, "cluster": t.cluster, "samples": t.samples, "tile": t.tile, "lanes": t.lanes}
		if t.spread {
			k["resident"], k["groups"] = 2, p.SMs/t.cluster
			delete(k, "cluster")
		}
		knobs = append(knobs, k)
		texts = append(texts, t.describe(batch, p))
	}
	return knobs, texts
}
