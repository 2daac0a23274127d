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

// The losses of a distillation have the values of their formulas and the gradients
// (softmax - mean)/B and 2 excess softmax/B, also where exponentials of logits overflow float32,
// and where the logits are so far from the target that exponentials of the difference do.
func TestDistillationLosses(t *testing.T) {
	t.Run("float64", func(t *testing.T) { testDistillationLosses[float64](t, tensor.Float64, 1e-12) })
	t.Run("float32", func(t *testing.T) { testDistillationLosses[float32](t, tensor.Float32, 1e-5) })
}

func testDistillationLosses[T float32 | float64](t *testing.T, dtype tensor.DType, tolerance float64) {
	const batch, classes = 5, 4
	logits := []T{0.5, -1, 2, 0.1, 91, 90, 89, 94, -3, -3, -3, -3.5, 130, 128, 131, 129, -120, -121, -122, -123}
	means := []T{0.1, 0.2, 0.6, 0.1, 0.05, 0.05, 0, 0.9, 0.25, 0.25, 0.25, 0.25, 0.1, 0.2, 0.6, 0.1, 0.4, 0.3, 0.2, 0.1}
	precisions := []T{1.5, 95, -2, 3, 2}
	names := []string{"cross-entropy", "squared error"}
	var values [2]float64
	var gradients [2][]T
	for i, name := range names {
		b := graph.New(dtype)
		x := b.Data("logits", dtype, batch, classes)
		target, precision := b.Data(meansInput, dtype, batch, classes), b.Data(precisionsInput, dtype, batch, 1)
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
			values[i], gradients[i] = s.Metric(0, name, 0), make([]T, batch*classes)
			return graph.Read(s, "gradient", 0, 0, gradients[i])
		}))
	}
	var wanted [2]float64
	for n := range batch {
		row, sum := logits[n*classes:(n+1)*classes], 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		excess := math.Log(sum) - float64(precisions[n])
		wanted[1] += excess * excess / batch
		for k, v := range row {
			p, at := math.Exp(float64(v))/sum, n*classes+k
			wanted[0] -= float64(means[at]) * math.Log(p) / batch
			for i, want := range []float64{(p - float64(means[at])) / batch, 2 * excess * p / batch} {
				if got := float64(gradients[i][at]); math.Abs(got-want) > tolerance*max(1, math.Abs(want)) {
					t.Errorf("%s: gradient %d is %v, want %v", names[i], at, got, want)
				}
			}
		}
	}
	for i, want := range wanted {
		if math.Abs(values[i]-want) > max(1e-6, tolerance)*math.Abs(want) { // metrics are float32
			t.Errorf("%s is %v, want %v", names[i], values[i], want)
		}
	}
}
