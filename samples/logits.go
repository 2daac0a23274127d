package samples

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// The names of the states that store what a program computes of each image.
const (
	probabilitiesStore = "probabilities"
	logitsStore        = "logits"
	gradientStore      = "gradient"
)

// storeRows makes a program store rows [B D] of each step in the state called name, which is
// [n D].
func storeRows(b *graph.Builder, name string, n int, order op.Batch, rows *graph.Node) {
	if b.Err() == nil {
		b.Apply(op.StoreRows{Batch: order}, rows, b.State(name, nil, n, graph.ShapeOf(rows)[1]), b.Header())
	}
}

// NewLogitPredictor is [NewSamplePredictor] of float32, whose predictions also store logits.
func NewLogitPredictor(device tensor.Device, images Images, batch int, network Network) (*SamplePredictor, error) {
	return loadPredictor(device, tensor.Float32, images, batch, network, storeLogits)
}

func storeLogits(b *graph.Builder, n int, order op.Batch, _, logits *graph.Node) {
	storeRows(b, logitsStore, n, order, logits)
}

// NewLogitEnsemble is [NewEnsemblePredictor], whose predictions also store logits.
func NewLogitEnsemble(device tensor.Device, images Images, batch, capacity, members int, network Network) (*EnsemblePredictor, error) {
	return newEnsemble(device, images, batch, capacity, members, network, storeLogits)
}

// Logits writes the logits of the last call of Predict, [images classes], into to. It returns an
// error unless the predictor was made by NewLogitPredictor or NewFeaturePredictor.
func (p *SamplePredictor) Logits(to []float32) error {
	return readLogits(p.session, 0, to)
}

// Logits writes the logits of a member for the images of the latest pass of Predict, in order, into
// to: a row of Classes numbers per image, up to the length of to. It returns an error unless the
// ensemble was made by NewLogitEnsemble or NewFeatureEnsemble. Predict's argument use may call it.
func (p *EnsemblePredictor) Logits(member int, to []float32) error {
	return readLogits(p.session, member, to)
}

func readLogits(s *graph.Session, chain int, to []float32) error {
	return errors.Wrap(graph.Read(s, logitsStore, chain, 0, to), "samples: logits")
}
