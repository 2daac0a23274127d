package pollen

import (
	"reflect"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Augment is how training images are changed at random, anew for each image of each step and chain;
// the zero value leaves them as they are. An image is turned about its centre, moved, mirrored, and
// loses a square, in this order; what comes from beyond its edges, and the square, has the mean of
// the training images. See op.Augment. Predictions use images as they are. A digit or a traffic
// sign that is mirrored may be another one, or none.
//
// With it the word posterior means something else. Minibatches' gradients are unbiased for the
// potential
//
//	U(theta) = -ln prior(theta) - sum over the N images of E[ln p(label | changed image, theta)]
//
// where the mean E is over the changes. N stays the number of distinct images, and each step sees
// one change of some of them. exp(-U) is not a posterior of N independent examples: the geometric
// mean of an image's likelihoods is not normalised over the labels. Nor is it one of all changed
// images, each taken as an example: it has that likelihood to a power far below 1. Temperatures,
// requested and measured, are those of exp(-U/T). The changes also add to the noise of minibatches,
// so that the gradient of a batch of all images is noisy. Sources: Izmailov et al., What are
// Bayesian neural network posteriors really like? (2021); Nabarro et al., Data augmentation in
// Bayesian neural networks and the cold posterior effect (2022).
//
// It does not go with settings that need U as a function of the parameters: methods with a
// Metropolis test, Spec.Anchor and Spec.Temperatures.
type Augment struct {
	Flip     bool    // mirrored left to right with probability 1/2
	Shift    int     // pixels: moved by whole rows and columns, each uniform on -Shift to Shift
	Rotation float64 // degrees, at most 180: turned by an angle uniform on -Rotation to Rotation
	Erase    float64 // square's side over the image's shorter, below 1; centred on any pixel
}

// augmentForm is the text of an Augment that has everything.
const augmentForm = "flip,shift=PIXELS,rotation=DEGREES,erase=SHARE"

// ParseAugment reads what String writes, as "flip,shift=2,rotation=10,erase=0.25", in any order.
func ParseAugment(text string) (Augment, error) {
	var a Augment
	fields := fieldsOf(reflect.ValueOf(&a).Elem())
	for _, item := range strings.Split(text, ",") {
		if err := setItem(fields, strings.TrimSpace(item)); err != nil {
			return Augment{}, invalid("augment %q: %v", text, err)
		}
	}
	return a, nil
}

// setItem sets the field that an item of the text names.
func setItem(fields []attribute, item string) error {
	name, value, given := strings.Cut(item, "=")
	for _, field := range fields {
		switch {
		case field.name != strings.TrimSpace(name):
			continue
		case !field.value.IsZero():
			return errors.Errorf("%s is given twice", field.name)
		case strings.TrimSpace(value) == "" && (given || field.value.Kind() != reflect.Bool):
			return errors.Errorf("%s has no value, must be as in %s", field.name, augmentForm)
		case !given:
			value = "true"
		}
		if err := setValue(field.value, strings.TrimSpace(value)); err != nil {
			return errors.Wrap(err, field.name)
		}
		if field.value.IsZero() {
			return errors.Errorf("%s changes nothing, leave it out", item)
		}
		return nil
	}
	return errors.Errorf("%q must be as in %s", item, augmentForm)
}

// String is the text that ParseAugment reads; empty if nothing is changed.
func (a Augment) String() string {
	var items []string
	for _, field := range fieldsOf(reflect.ValueOf(a)) {
		switch {
		case field.value.IsZero():
		case field.value.Kind() == reflect.Bool:
			items = append(items, field.name)
		default:
			items = append(items, field.name+"="+field.text())
		}
	}
	return strings.Join(items, ",")
}

// isNone reports whether images are left as they are.
func (a Augment) isNone() bool { return a == Augment{} }

func (a Augment) op(stream uint16) op.Augment {
	return op.Augment{Flip: a.Flip, Shift: a.Shift, Rotation: a.Rotation, Erase: a.Erase, Stream: stream}
}

// apply changes a minibatch's images. It takes a stream of random numbers only if there is
// something to change.
func (a Augment) apply(b *graph.Builder, x *graph.Node) *graph.Node {
	if a.isNone() {
		return x
	}
	return b.Apply(a.op(b.Stream()), x, b.Header())
}

// checkFits refuses changes that images of this size cannot undergo.
func (a Augment) checkFits(data *datasets.Dataset) error {
	if a.isNone() {
		return nil
	}
	images, header := tensor.Shape{1, data.Channels, data.Height, data.Width}, tensor.Shape{3}
	if _, err := a.op(1).Shape([]tensor.Shape{images, header}); err != nil {
		return invalid("augment: %v", err)
	}
	return nil
}
