package samples

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// InputGradient computes, for each of a fixed set of images, the gradient of -log p(label | image)
// with respect to the image's pixels, where p is the average of the samples' probabilities p_s with
// weights w_s:
//
//	-d log p / dx = sum_s w_s p_s (-d log p_s / dx) / sum_s w_s p_s
//
// A sample that gives the label almost no probability contributes almost nothing. Gradient-based
// attacks and saliency maps use this gradient.
type InputGradient struct {
	predictor     *SamplePredictor
	images        Images
	labels        []int32
	batch         int
	probabilities []float32 // [N K] under one sample
	one           []float32 // [N C H W] the gradient under one sample
	sum           []float64 // [N C H W] of w_s p_s times the gradient
	weight        []float64 // [N] the sum of w_s p_s
}

// NewInputGradient loads images, their labels and the network on a device.
func NewInputGradient(device tensor.Device, dtype tensor.DType, images Images, labels []int32, batch int, network Network) (*InputGradient, error) {
	if err := images.validate(); err != nil {
		return nil, err
	}
	n := images.Len()
	if len(labels) != n {
		return nil, errors.Errorf("samples: input gradient: must have one label for each of %d images, got %d", n, len(labels))
	}
	size := images.Channels * images.Height * images.Width
	p, err := loadPredictor(device, dtype, images, batch, network, storeGradient(size))
	if err != nil {
		return nil, err
	}
	for i, label := range labels {
		if label < 0 || int(label) >= p.classes {
			p.Close()
			return nil, errors.Errorf("samples: input gradient: label of image %d must be in [0, %d), got %d", i, p.classes, label)
		}
	}
	if err := graph.Write(p.session, "labels", 0, 0, labels); err != nil {
		p.Close()
		return nil, err
	}
	return &InputGradient{
		predictor: p, images: images, labels: labels, batch: min(batch, n),
		probabilities: make([]float32, n*p.classes), one: make([]float32, n*size), sum: make([]float64, n*size), weight: make([]float64, n),
	}, nil
}

// storeGradient returns an addition that stores the gradients [n size] of the images.
func storeGradient(size int) addition {
	return func(b *graph.Builder, n int, order op.Batch, x, logits *graph.Node) {
		classes := b.Apply(op.GatherLabels{Batch: order}, b.Data("labels", tensor.Int32, n), b.Header())
		gradient := b.Gradients(b.Apply(op.CrossEntropy{}, logits, classes), x)[0]
		storeRows(b, gradientStore, n, order, b.Apply(op.ViewAs(order.Size, size), gradient))
	}
}

// GradientSize returns the memory of an InputGradient of n images. images gives their shape; its
// Pixels are ignored.
func GradientSize(device tensor.Device, images Images, n, batch int, network Network) (Size, error) {
	size := images.Channels * images.Height * images.Width
	s, err := sizeOf(device, images, n, batch, 1, network, storeGradient(size))
	// Probabilities and weights; the gradient of a sample, and the sum in float64.
	s.Host += n * (4*s.Classes + 8 + (4+8)*size)
	return s, err
}

// Add adds a sample to the average. If the sample's probabilities or their gradient are not finite
// it returns a NotFiniteError and adds nothing.
func (g *InputGradient) Add(s Sample) error {
	if err := g.predictor.Predict(s, g.probabilities); err != nil {
		return err
	}
	if err := g.predictor.session.ReadFloats(gradientStore, 0, g.one); err != nil {
		return err
	}
	if err := checkFinite(g.one, len(g.labels), s, "gradient"); err != nil {
		return err
	}
	size := len(g.one) / len(g.labels)
	for i, label := range g.labels {
		w := s.Weight * float64(g.probabilities[i*g.predictor.classes+int(label)])
		g.weight[i] += w
		for j := i * size; j < (i+1)*size; j++ {
			g.sum[j] += w * float64(g.one[j])
		}
	}
	return nil
}

// Gradient returns the gradient for the samples added so far, [N C H W], with respect to pixels
// between 0 and 1. It is zero for an image whose label has probability 0 under all samples.
func (g *InputGradient) Gradient() []float64 {
	gradient := make([]float64, len(g.sum))
	size := len(g.sum) / len(g.labels)
	for i, weight := range g.weight {
		if weight == 0 {
			continue
		}
		// The loss is the batch's mean, and the network's input is divided by Std.
		planes := len(g.images.Std)
		for j := range size {
			scale := float64(g.batch) / (weight * g.images.Std[j*planes/size])
			gradient[i*size+j] = scale * g.sum[i*size+j]
		}
	}
	return gradient
}

// Close releases the memory.
func (g *InputGradient) Close() error { return g.predictor.Close() }
