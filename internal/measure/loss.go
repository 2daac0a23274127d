package measure

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// weightsInput is the name of the input with the examples' weights.
const weightsInput = "weights"

// GatherWeights makes the input "weights" [n], and returns the weights [B] of each step's examples.
func GatherWeights(b *graph.Builder, batch op.Batch, n int) *graph.Node {
	return b.Apply(op.GatherRows{Batch: batch}, b.Data(weightsInput, tensor.Float32, n), b.Header())
}

// WriteWeights writes the weights of some labels into a session with GatherWeights.
func WriteWeights(s *graph.Session, labels []int32, byClass []float64) error {
	weights := make([]float32, len(labels))
	for i, label := range labels {
		weights[i] = float32(byClass[label])
	}
	return graph.Write(s, weightsInput, 0, 0, weights)
}

// Loss returns the mean cross-entropy of a minibatch's logits [B K] for labels [B]. The
// cross-entropy of each example is multiplied by its weight, unless weights [B] is nil.
func Loss(b *graph.Builder, logits, labels, weights *graph.Node) *graph.Node {
	if weights == nil {
		return b.Apply(op.CrossEntropy{}, logits, labels)
	}
	likelihoods := b.Apply(op.LogProbability{}, logits, labels)
	return b.Apply(op.Negate{}, b.Apply(op.Mean{}, b.Apply(op.Multiply{}, likelihoods, weights)))
}
