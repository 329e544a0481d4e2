package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// An Optimizer is a rule with the numbers that stay the same during training.
type Optimizer struct {
	rnn.Optimizer
	Rate   float64 // learning rate of the first epoch
	Anneal float64 // what divides the rate after each epoch, at least 1
	Epoch  int     // iterations; 0: the rate stays the same
	Clip   float64 // largest norm of all gradients, to which larger ones are cut; 0: no limit
}

// RateAt is the learning rate of an iteration, which counts from 1. It depends on nothing else, so
// training goes on from a checkpoint at the rate that it would have had.
func (o Optimizer) RateAt(iteration int) float64 {
	if o.Epoch == 0 {
		return o.Rate
	}
	return o.Rate / math.Pow(o.Anneal, float64((iteration-1)/o.Epoch))
}

// usual has the default settings of each rule.
var usual = map[schedule.Rule]map[string]float64{
	schedule.SGD:  {"lr": 0.1, "momentum": 0, "nesterov": 0, "anneal": 1, "epoch": 0, "clip": 0, "scale": 0},
	schedule.Adam: {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "anneal": 1, "epoch": 0, "clip": 0, "scale": 0},
}

// OptimizerHelp returns a line of help for each rule.
func OptimizerHelp() []string {
	return []string{
		"sgd:lr=0.1:momentum=0:nesterov=0:anneal=1:epoch=0:clip=0:scale=0",
		"adam:lr=0.001:beta1=0.9:beta2=0.999:eps=1e-08:anneal=1:epoch=0:clip=0:scale=0 (Kingma & Ba, arXiv:1412.6980)",
	}
}

// ParseOptimizer reads a rule with settings, such as adam:lr=1e-3:clip=1.
// Scale is that of the loss; 0 is 1,024 in fp16 and 1 elsewhere.
func ParseOptimizer(spec string, p rnn.Precision) (Optimizer, error) {
	name, rest, _ := strings.Cut(spec, ":")
	rule := schedule.Rule(slices.Index(schedule.Rules(), name))
	if rule < 0 {
		return Optimizer{}, fmt.Errorf("there is no optimiser %q: choose one of %s", name, strings.Join(schedule.Rules(), ", "))
	}
	set := map[string]float64{}
	for k, v := range usual[rule] {
		set[k] = v
	}
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == ':' }) {
		key, text, ok := strings.Cut(part, "=")
		if _, known := set[key]; !known || !ok {
			return Optimizer{}, fmt.Errorf("%s has no setting %q: write it as %s", name, part, OptimizerHelp()[rule])
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1e9) {
			return Optimizer{}, fmt.Errorf("%s: %s is %q: it must be a number from 0 to 1e9", name, key, text)
		}
		set[key] = v
	}
	o := Optimizer{Rate: set["lr"], Anneal: set["anneal"], Epoch: int(set["epoch"]), Clip: set["clip"], Optimizer: rnn.Optimizer{
		Rule: rule, Beta1: set["beta1"] + set["momentum"], Beta2: set["beta2"], Epsilon: set["eps"], LossScale: set["scale"],
		Nesterov: set["nesterov"] == 1,
	}}
	if o.LossScale == 0 && p == rnn.FP16 {
		o.LossScale = 1024
	}
	o.Norm = o.Clip > 0 || p == rnn.FP16 || p == rnn.BF16
	if err := checkSettings(set); err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	return o, o.Check()
}

// checkSettings reports settings that cannot be, of any rule.
func checkSettings(set map[string]float64) error {
	switch v, epoch := set["nesterov"], set["epoch"]; {
	case set["lr"] == 0:
		return errors.New("lr is 0: nothing would change")
	case v != 0 && v != 1:
		return fmt.Errorf("nesterov is %g: it must be 0 or 1", v)
	case epoch != math.Trunc(epoch):
		return fmt.Errorf("epoch is %g: it must be a whole number of iterations", epoch)
	case set["anneal"] < 1:
		return fmt.Errorf("anneal is %g: it must be at least 1, since it divides lr", set["anneal"])
	case (set["anneal"] > 1) != (epoch > 0):
		return errors.New("anneal and epoch go together: lr is divided by anneal, above 1, after each epoch iterations")
	}
	return nil
}

// String spells o as ParseOptimizer reads it.
func (o Optimizer) String() string {
	values := map[string]float64{
		"lr": o.Rate, "anneal": o.Anneal, "epoch": float64(o.Epoch), "clip": o.Clip, "momentum": o.Beta1, "beta1": o.Beta1, "beta2": o.Beta2, "eps": o.Epsilon, "scale": o.LossScale,
	}
	if o.Nesterov {
		values["nesterov"] = 1
	}
	text := o.Rule.String()
	for _, key := range []string{"lr", "momentum", "nesterov", "beta1", "beta2", "eps", "anneal", "epoch", "clip", "scale"} {
		was, has := usual[o.Rule][key]
		if v := values[key]; has && (key == "lr" || v != was) {
			text += ":" + key + "=" + strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return text
}
