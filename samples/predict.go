package samples

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Images are images to predict, as bytes: image i starts at Pixels[i*C*H*W], and the network's
// input in channel c is (byte/255 - Mean[c])/Std[c].
type Images struct {
	Pixels                  []byte
	Channels, Height, Width int
	Mean, Std               []float64 // one per channel, or one for all
}

// Len returns the number of images.
func (i Images) Len() int { return len(i.Pixels) / (i.Channels * i.Height * i.Width) }

func (i Images) validate() error {
	extents := tensor.Shape{i.Channels, i.Height, i.Width}
	if err := extents.Validate(); err != nil {
		return errors.Wrap(err, "samples: predictor: images")
	}
	if len(i.Pixels) == 0 || len(i.Pixels)%extents.Elements() != 0 {
		return errors.Errorf("samples: predictor: Pixels must be whole images of shape %v, got %d bytes", extents, len(i.Pixels))
	}
	finite := len(i.Mean) == len(i.Std)
	for c := 0; finite && c < len(i.Mean); c++ {
		finite = i.Std[c] > 0 && i.Std[c] < math.Inf(1) && i.Mean[c]-i.Mean[c] == 0
	}
	if !finite {
		return errors.Errorf("samples: predictor: Mean and Std must have the same number of finite values, and Std positive ones, got %v and %v",
			i.Mean, i.Std)
	}
	return nil
}

// SamplePredictor computes a network's class probabilities for a fixed set of images, for one
// sample after another. Images keep their order.
type SamplePredictor struct {
	session *graph.Session
	images  int
	classes int
	steps   int

	features featureStores // empty unless it is of NewFeaturePredictor
}

// NewSamplePredictor loads images and the network, which maps a batch of images to logits, on a
// device.
func NewSamplePredictor(device tensor.Device, dtype tensor.DType, images Images, batch int,
	network func(b *graph.Builder, x *graph.Node) *graph.Node,
) (*SamplePredictor, error) {
	if err := images.validate(); err != nil {
		return nil, err
	}
	return loadPredictor(device, dtype, images, op.Batch{Size: min(batch, images.Len())}, network, nil)
}

// loadPredictor makes a SamplePredictor of valid images. more, unless nil, adds to its graph.
func loadPredictor(device tensor.Device, dtype tensor.DType, images Images, order op.Batch,
	network func(b *graph.Builder, x *graph.Node) *graph.Node, more func(b *graph.Builder, x, logits *graph.Node),
) (*SamplePredictor, error) {
	program, classes, err := predictionProgram(dtype, images, images.Len(), order, network, more)
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if err := graph.Write(session, "images", 0, 0, images.Pixels); err != nil {
		session.Close()
		return nil, err
	}
	return &SamplePredictor{session: session, images: images.Len(), classes: classes, steps: (images.Len() + order.Size - 1) / order.Size}, nil
}

// Size is the memory that a predictor takes on a device, and what determines it.
type Size struct {
	tensor.Footprint
	Classes int
	Weights int // of the network
}

// PredictionSize returns the memory of a SamplePredictor of n images. images gives their shape; its
// Pixels are ignored.
func PredictionSize(device tensor.Device, images Images, n, batch int, network func(b *graph.Builder, x *graph.Node) *graph.Node) (Size, error) {
	return sizeOf(device, images, n, op.Batch{Size: min(batch, n)}, 1, network, nil)
}

func sizeOf(device tensor.Device, images Images, n int, order op.Batch, chains int,
	network func(b *graph.Builder, x *graph.Node) *graph.Node, more func(b *graph.Builder, x, logits *graph.Node),
) (s Size, err error) {
	program, classes, err := predictionProgram(tensor.Float32, images, n, order, network, more)
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
// shape and moments of images, one batch per step. more, unless nil, adds to its graph.
func predictionProgram(dtype tensor.DType, images Images, n int, order op.Batch,
	network func(b *graph.Builder, x *graph.Node) *graph.Node, more func(b *graph.Builder, x, logits *graph.Node),
) (program *graph.Program, classes int, err error) {
	if network == nil {
		return nil, 0, errors.New("samples: predictor: the network must not be nil")
	}
	b := graph.New(dtype)
	b.Mode = graph.Prediction
	pixels := b.Data("images", tensor.Uint8, n, images.Channels, images.Height, images.Width)
	x := b.Apply(op.GatherImages{Batch: order, Mean: op.ChannelsOf(images.Mean...), Std: op.ChannelsOf(images.Std...)}, pixels, b.Header())
	logits := network(b, x)
	p := b.Apply(op.Softmax{}, logits)
	shape := graph.ShapeOf(p)
	if b.Err() == nil && len(shape) != 2 {
		return nil, 0, errors.Errorf("samples: predictor: the network's output must have shape [B K], got %v", shape)
	}
	if more != nil {
		more(b, x, logits)
	}
	if err := b.Err(); err != nil {
		return nil, 0, err
	}
	b.Apply(op.StoreRows{Batch: order}, p, b.State("probabilities", nil, n, shape[1]), b.Header())
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
	if err := p.session.ReadFloats("probabilities", 0, probabilities); err != nil {
		return err
	}
	return checkFinite(probabilities, p.images, s, "probability")
}

// Classes returns the number of the network's classes.
func (p *SamplePredictor) Classes() int { return p.classes }

// Close releases the memory.
func (p *SamplePredictor) Close() error { return p.session.Close() }
