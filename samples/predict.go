package samples

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Network makes the nodes of a network, which maps a batch of images x to logits [B K].
type Network = func(b *graph.Builder, x *graph.Node) *graph.Node

// SamplePredictor computes a network's class probabilities for a fixed set of images, for one
// sample after another. Images keep their order.
type SamplePredictor struct {
	session *graph.Session
	images  int
	classes int
	steps   int

	features featureStores // empty unless the predictor was made by NewFeaturePredictor
}

// NewSamplePredictor loads images and the network on a device.
func NewSamplePredictor(device tensor.Device, dtype tensor.DType, images Images, batch int, network Network) (*SamplePredictor, error) {
	return loadPredictor(device, dtype, images, batch, network, nil)
}

// addition adds nodes to a predictor's program, which gathers batches of n images in an order, and
// computes logits from the network's input x.
type addition func(b *graph.Builder, n int, order op.Batch, x, logits *graph.Node)

// loadPredictor makes a SamplePredictor. more may be nil.
func loadPredictor(device tensor.Device, dtype tensor.DType, images Images, batch int, network Network, more addition) (*SamplePredictor, error) {
	if err := images.validate(); err != nil {
		return nil, err
	}
	program, classes, err := predictionProgram(dtype, images, images.Len(), batch, network, more)
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if err := images.Write(session); err != nil {
		session.Close()
		return nil, err
	}
	return &SamplePredictor{session: session, images: images.Len(), classes: classes, steps: (images.Len() + batch - 1) / batch}, nil
}

// Size is the memory that a predictor takes on a device, and what determines it.
type Size struct {
	tensor.Footprint
	Classes int
	Weights int // of the network
}

// PredictionSize returns the memory of a SamplePredictor of n images. images gives their shape
// only.
func PredictionSize(device tensor.Device, images Images, n, batch int, network Network) (Size, error) {
	return sizeOf(device, images, n, batch, 1, network, nil)
}

func sizeOf(device tensor.Device, images Images, n, batch, chains int, network Network, more addition) (s Size, err error) {
	program, classes, err := predictionProgram(tensor.Float32, images, n, batch, network, more)
	if err != nil {
		return s, err
	}
	size, initial, err := program.Size(device, chains)
	size.Host += initial
	s = Size{Footprint: size, Classes: classes}
	for _, p := range program.Parameters() {
		s.Weights += p.Shape.Elements()
	}
	return s, err
}

// predictionProgram returns a program that stores the probabilities [n K] of n images with the
// shape and moments of images, one batch per step. more may be nil.
func predictionProgram(dtype tensor.DType, images Images, n, batch int, network Network, more addition) (program *graph.Program, classes int, err error) {
	if network == nil {
		return nil, 0, errors.New("samples: predictor: the network must not be nil")
	}
	b := graph.New(dtype)
	b.Mode = graph.Prediction
	order := op.Batch{Size: min(batch, n)}
	x := images.Input(b, order, n)
	logits := network(b, x)
	p := b.Apply(op.Softmax{}, logits)
	shape := graph.ShapeOf(p)
	if b.Err() == nil && len(shape) != 2 {
		return nil, 0, errors.Errorf("samples: predictor: the network's output must have shape [B K], got %v", shape)
	}
	if more != nil {
		more(b, n, order, x, logits)
	}
	if err := b.Err(); err != nil {
		return nil, 0, err
	}
	storeRows(b, probabilitiesStore, n, order, p)
	program, err = b.Compile()
	return program, shape[1], err
}

// Predict writes the probabilities [images, classes] under a sample into probabilities. It returns
// a NotFiniteError if they are not finite. If the network draws random numbers, as with dropout
// that stays active in prediction, each call draws new ones; averaging calls with one sample gives
// Monte Carlo dropout.
func (p *SamplePredictor) Predict(s Sample, probabilities []float32) error {
	if len(probabilities) != p.images*p.classes {
		return errors.Errorf("samples: predict: probabilities must have length %d x %d (images x classes), got %d", p.images, p.classes, len(probabilities))
	}
	if err := s.Put(p.session, 0); err != nil {
		return err
	}
	if err := p.session.Run(p.steps); err != nil {
		return err
	}
	if err := p.session.ReadFloats(probabilitiesStore, 0, probabilities); err != nil {
		return err
	}
	return checkFinite(probabilities, p.images, s, "probability")
}

// Classes returns the number of the network's classes.
func (p *SamplePredictor) Classes() int { return p.classes }

// Close releases the memory.
func (p *SamplePredictor) Close() error { return p.session.Close() }
