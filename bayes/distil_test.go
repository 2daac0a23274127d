package bayes

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// taught returns a specification with the fields that only a distillation must have.
func taught(s Spec) Spec {
	if _, ok := s.Method.(Distillation); ok {
		s.Chains, s.Teacher = 1, "runs/teacher"
	}
	return s
}

// The losses of a distillation have the values of their formulas and, in float64, the gradients
// (softmax - mean)/B and 2 excess softmax/B, also where exponentials of logits overflow float32.
func TestDistillationLosses(t *testing.T) {
	const batch, classes = 3, 4
	logits := []float64{0.5, -1, 2, 0.1, 91, 90, 89, 94, -3, -3, -3, -3.5}
	means := []float64{0.1, 0.2, 0.6, 0.1, 0.05, 0.05, 0, 0.9, 0.25, 0.25, 0.25, 0.25}
	precisions := []float64{1.5, 95, -2}
	names := []string{"cross-entropy", "squared error"}
	var values [2]float64
	var gradients [2][]float64
	for i, name := range names {
		b := graph.New(tensor.Float64)
		x := b.Data("logits", tensor.Float64, batch, classes)
		target, precision := b.Data(meansInput, tensor.Float64, batch, classes), b.Data(precisionsInput, tensor.Float64, batch, 1)
		crossEntropy, squaredError := distillationLosses(b, x, target, precision)
		loss := []*graph.Node{crossEntropy, squaredError}[i]
		b.Output("gradient", b.Gradients(loss, x)[0])
		b.Record(name, loss)
		must(t, b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
			must(t, graph.Write(s, "logits", 0, 0, logits))
			if i == 0 { // the other does not depend on them
				must(t, graph.Write(s, meansInput, 0, 0, means))
			}
			must(t, graph.Write(s, precisionsInput, 0, 0, precisions))
			must(t, s.Run(1))
			values[i], gradients[i] = s.Metric(0, name, 0), make([]float64, batch*classes)
			return graph.Read(s, "gradient", 0, 0, gradients[i])
		}))
	}
	var wanted [2]float64
	for n := range batch {
		row, sum := logits[n*classes:(n+1)*classes], 0.0
		for _, v := range row {
			sum += math.Exp(v)
		}
		excess := math.Log(sum) - precisions[n]
		wanted[1] += excess * excess / batch
		for k, v := range row {
			p, at := math.Exp(v)/sum, n*classes+k
			wanted[0] -= means[at] * math.Log(p) / batch
			for i, want := range []float64{(p - means[at]) / batch, 2 * excess * p / batch} {
				if got := gradients[i][at]; math.Abs(got-want) > 1e-12 {
					t.Errorf("%s: gradient %d is %v, want %v", names[i], at, got, want)
				}
			}
		}
	}
	for i, want := range wanted {
		if math.Abs(values[i]-want) > 1e-6*math.Abs(want) { // metrics are float32
			t.Errorf("%s is %v, want %v", names[i], values[i], want)
		}
	}
}
