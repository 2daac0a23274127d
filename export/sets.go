package export

import (
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/onnx"
)

// predictionSets adds the prediction sets [batch K] for averaged probabilities. It returns an
// error if the rule is not valid.
//
// Float32 rounds probabilities, so that thresholds are slightly wider: no class is left out of a
// set by rounding.
func (p *predictive) predictionSets(mean string, c *evaluate.Calibration) error {
	s, err := c.Sets(p.o.Level, p.o.Sets)
	if err != nil {
		return err
	}
	w, k := p.w, p.m.Data.Classes()
	w.Scope("sets")
	defer w.Scope("")
	thresholds := []float32{rounded(s.Marginal)}
	if s.Thresholds != nil {
		thresholds = make([]float32, k)
		for class, t := range s.Thresholds {
			thresholds[class] = rounded(t.Score)
		}
	}
	above, rank := p.ranks(mean)
	score := above
	switch s.Rule.Score {
	case evaluate.ThresholdSets:
		score = w.Node("Neg", nil, mean)
	case evaluate.RegularizedSets:
		over := w.Node("Max", nil, w.Node("Sub", nil, rank, w.Float("kreg", float64(s.Rule.KReg))), w.Float("none", 0))
		score = w.Node("Add", nil, above, w.Node("Mul", nil, over, w.Float("lambda", s.Rule.Lambda)))
	}
	inside := w.Node("LessOrEqual", nil, score, w.Floats("thresholds", thresholds, len(thresholds)))
	if !s.Rule.AllowEmpty { // a set that would be empty has the most probable class
		count := w.Node("ReduceMax", onnx.Attributes{"axes": []int{1}, "keepdims": 1}, w.Node("Cast", onnx.Attributes{"to": int(onnx.Float32)}, inside))
		first := w.Node("Less", nil, rank, w.Float("second", 1.5))
		inside = w.Node("Or", nil, inside, w.Node("And", nil, first, w.Node("Less", nil, count, w.Float("half", 0.5))))
	}
	w.Output(setOutput, inside, onnx.Bool, -1, k)
	return nil
}

// rounded widens a threshold.
func rounded(threshold float64) float32 {
	const relative, absolute = 1e-6, 1e-7
	return float32(threshold + max(absolute, relative*max(threshold, -threshold)))
}

// ranks adds, for each class, the total probability of the classes that are ranked before it, and
// its rank from 1, both [batch K]. Of equally probable classes, that with the lower number is
// first.
func (p *predictive) ranks(mean string) (above, rank string) {
	w, k := p.w, p.m.Data.Classes()
	// Axis 1 has the classes j that may precede the classes of axis 2.
	others := w.Node("Unsqueeze", nil, mean, w.Integers("others", 2))
	own := w.Node("Unsqueeze", nil, mean, w.Integers("own", 1))
	lower := make([]float32, k*k)
	for j := range k {
		for i := j + 1; i < k; i++ {
			lower[j*k+i] = 1
		}
	}
	number := func(of string) string { return w.Node("Cast", onnx.Attributes{"to": int(onnx.Float32)}, of) }
	ties := w.Node("Mul", nil, number(w.Node("Equal", nil, others, own)), w.Floats("lower", lower, 1, k, k))
	before := w.Node("Add", nil, number(w.Node("Greater", nil, others, own)), ties)
	over, classes := onnx.Attributes{"keepdims": 0}, w.Integers("classes", 1)
	above = w.Node("ReduceSum", over, w.Node("Mul", nil, before, others), classes)
	return above, w.Node("Add", nil, w.Node("ReduceSum", over, before, classes), w.Float("one", 1))
}
