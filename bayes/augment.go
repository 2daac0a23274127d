package bayes

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/attributes"
	"github.com/pollen-ml/pollen/tensor"
)

// Augment describes how training images are changed at random, independently for each image at each
// step of each chain. The zero value leaves them unchanged. In this order, an image is rotated
// about its centre and zoomed, shifted, mirrored, its contrast and brightness changed, and a square
// of it erased. The square, and pixels from beyond the edges, get the mean of the training images.
// See op.Augment. Predictions use unchanged images. Mirroring may change the class of a digit or a
// traffic sign.
//
// Augmentation changes the meaning of the posterior. Minibatches' gradients are unbiased for the
// potential
//
//	U(theta) = -ln prior(theta) - sum over the N images of E[ln p(label | changed image, theta)]
//
// where the mean E is over the changes. N is still the number of distinct images, and each step
// uses one change of some of them. exp(-U) is not a posterior of N independent examples, since the
// geometric mean of an image's likelihoods is not normalised over the labels. Nor is it the
// posterior of all changed images as examples: it raises their likelihood to a power far below 1.
// Temperatures, requested and measured, refer to exp(-U/T). The changes also add to the noise of
// minibatches, so that even the gradient of a batch of all images is noisy. Sources: Izmailov et
// al., What are Bayesian neural network posteriors really like? (2021); Nabarro et al., Data
// augmentation in Bayesian neural networks and the cold posterior effect (2022).
//
// Augment cannot be combined with what needs U as a function of the parameters: samplers on all
// data, Spec.Anchor and Spec.Temperatures.
//
// Before a head on a frozen network, the features of an image are computed once instead of at each
// step, so the changes are drawn once, too: there are Copies of each image, and E is the mean over
// them. They are the same for all chains and depend on the seed and on the image's position in the
// data. U is then a function of the parameters, which samplers on all data can sample; Spec.Anchor
// and Spec.Temperatures do not support copies.
type Augment struct {
	// Flip mirrors an image left to right with probability 1/2.
	Flip bool
	// Shift moves an image by whole rows and columns, each uniform on -Shift to Shift pixels.
	Shift int
	// Rotation turns an image by an angle uniform on -Rotation to Rotation degrees, at most 180.
	Rotation float64
	// Zoom enlarges or shrinks an image, with equal probability, by a factor uniform on 1 to
	// 1 + Zoom. It is at most 4.
	Zoom float64
	// Contrast multiplies or divides the distance of each pixel from the mean of the training
	// images, with equal probability, by a factor uniform on 1 to 1 + Contrast. It is at most 4.
	Contrast float64
	// Brightness adds a number uniform on -Brightness to Brightness to all pixels, in units of the
	// standard deviation of the training images' pixels. It is at most 4.
	Brightness float64
	// Erase blanks a square centred on a random pixel. Its side is this fraction, below 1, of the
	// image's shorter side: 0.25 erases a square of 8 pixels from an image of 32x32.
	Erase float64
	// Copies is the number of changed copies of each image before a head on a frozen network, at
	// most 1000 and by default 8. It is 0 for other networks.
	Copies int
}

// The default and the maximum of Augment.Copies before a head on a frozen network.
const (
	augmentCopies    = 8
	maxAugmentCopies = 1000
)

// augmentForm is the text of an Augment with all fields.
const augmentForm = "flip,shift=PIXELS,rotation=DEGREES,zoom=FRACTION,contrast=FRACTION,brightness=DEVIATIONS,erase=FRACTION,copies=N"

// noAugment is the text of an Augment that changes nothing.
const noAugment = "none"

// parseAugment reads a text as String returns it, such as "flip,shift=2,rotation=10,erase=0.25", in
// any order, or "none". An unknown field or value is an InvalidError.
func parseAugment(text string) (Augment, error) {
	var a Augment
	if text == noAugment {
		return a, nil
	}
	fields := attributes.In(&a)
	for _, item := range strings.Split(text, ",") {
		if err := setItem(fields, strings.TrimSpace(item)); err != nil {
			return Augment{}, invalid("augment %q: %v", text, err)
		}
	}
	return a, nil
}

// setItem sets the field that an item of the text names.
func setItem(fields []attributes.Attribute, item string) error {
	name, value, given := strings.Cut(item, "=")
	for _, field := range fields {
		switch {
		case field.Name != strings.TrimSpace(name):
			continue
		case !field.IsZero():
			return errors.Errorf("%s is given twice", field.Name)
		case strings.TrimSpace(value) == "" && (given || !field.IsBool()):
			return errors.Errorf("%s has no value, must be as in %s", field.Name, augmentForm)
		case !given:
			value = "true"
		}
		if err := field.Set(value); err != nil {
			return err
		}
		if field.IsZero() {
			return errors.Errorf("%s changes nothing, leave it out", item)
		}
		return nil
	}
	return errors.Errorf("%q must be as in %s, or the whole text %s", item, augmentForm, noAugment)
}

// String returns the text of the setting augment, such as "flip,shift=2", or "none".
func (a Augment) String() string {
	if a == (Augment{}) {
		return noAugment
	}
	var items []string
	for _, field := range attributes.Of(a) {
		switch {
		case field.IsZero():
		case field.IsBool():
			items = append(items, field.Name)
		default:
			items = append(items, field.String())
		}
	}
	return strings.Join(items, ",")
}

// isNone reports whether images are left unchanged.
func (a *Augment) isNone() bool { return a == nil || *a == Augment{} }

// atEachStep reports whether images are changed at each step, so that the potential is not a
// function of the parameters.
func (a *Augment) atEachStep() bool { return !a.isNone() && a.Copies == 0 }

// copies returns the number of rows of the training data for each image.
func (a *Augment) copies() int {
	if a.isNone() {
		return 1
	}
	return max(1, a.Copies)
}

func (a Augment) op(stream uint16) op.Augment {
	return op.Augment{Flip: a.Flip, Shift: a.Shift, Rotation: a.Rotation, Zoom: a.Zoom, Contrast: a.Contrast, Brightness: a.Brightness,
		Erase: a.Erase, Stream: stream}
}

// apply changes the images of a step.
func (a Augment) apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return b.Apply(a.op(b.Stream()), x, b.Header())
}

// renormalised returns images [B C H W] that one mean and standard deviation of each channel
// normalise, normalised by others. name begins the names of the tables for that.
func renormalised(b *graph.Builder, name string, x *graph.Node, mean, std, newMean, newStd []float64) *graph.Node {
	channels := graph.ShapeOf(x)[1]
	factors, offsets := make([]float64, channels), make([]float64, channels)
	for c := range channels {
		factors[c], offsets[c] = std[c]/newStd[c], (mean[c]-newMean[c])/newStd[c]
	}
	return op.ScaleChannels(b, name, x, factors, offsets)
}

// checkFits refuses changes that images of this size do not allow.
func (a *Augment) checkFits(data *datasets.Dataset) error {
	if a.isNone() {
		return nil
	}
	images, header := tensor.Shape{1, data.Channels, data.Height, data.Width}, tensor.Shape{3}
	if _, err := a.op(1).Shape([]tensor.Shape{images, header}); err != nil {
		return invalid("augment: %v", err)
	}
	return nil
}
