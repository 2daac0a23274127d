package bayes

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/datasets"
)

// ClassWeights weight the classes in the loss. The zero value gives each class the weight 1.
// Weights are divided by their mean over the training images, so that N and the meaning of learning
// rates, priors and temperatures do not change. With weights w the potential is
//
//	U(theta) = -ln prior(theta) - sum over the N images of w(label) ln p(label | image, theta)
//
// This gives the posterior one would have if class k had w(k) times as many images, in a data set
// of the same total size. Predictions are then calibrated for that mixture of classes. With
// Balanced, a rare class is found more often, but also predicted wrongly more often. On test images
// with the class frequencies of training, accuracy is usually lower and probabilities of rare
// classes are too high. Guarantees that are calibrated on validation images hold as before.
type ClassWeights struct {
	// Balanced gives each class the same total weight: w(k) = N/(K n(k)) for n(k) of N images in
	// one of K classes.
	Balanced bool
	// Of are weights of classes, by name; classes that it does not name have the weight 1. It
	// cannot be combined with Balanced.
	Of map[string]float64
}

// balancedText is the text of ClassWeights.Balanced.
const balancedText = "balanced"

// parseClassWeights reads a text as String returns it.
func parseClassWeights(text string) (ClassWeights, error) {
	if text == balancedText {
		return ClassWeights{Balanced: true}, nil
	}
	w := ClassWeights{Of: map[string]float64{}}
	for _, item := range strings.Split(text, ",") {
		at := strings.LastIndex(item, "=")
		if at < 1 {
			return w, invalid("class-weights must be %s, or CLASS=WEIGHT with commas between classes, got %q", balancedText, text)
		}
		name := strings.TrimSpace(item[:at])
		value, err := strconv.ParseFloat(strings.TrimSpace(item[at+1:]), 64)
		if err != nil {
			return w, invalid("class-weights: %s must be a number, got %q", name, item[at+1:])
		}
		if _, twice := w.Of[name]; twice {
			return w, invalid("class-weights: %s is given twice", name)
		}
		w.Of[name] = value
	}
	return w, w.validate()
}

// String returns the text of the setting class-weights: "balanced", or weights as in
// "cat=2,dog=0.5", sorted by name; empty for the zero value.
func (w ClassWeights) String() string {
	if w.Balanced {
		return balancedText
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(w.Of)) {
		items = append(items, name+"="+strconv.FormatFloat(w.Of[name], 'g', -1, 64))
	}
	return strings.Join(items, ",")
}

func (w ClassWeights) isNone() bool { return !w.Balanced && len(w.Of) == 0 }

func (w ClassWeights) validate() error {
	if w.Balanced && len(w.Of) > 0 {
		return invalid("class-weights must be either balanced or by class, got both")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Of)) {
		if v := w.Of[name]; !(v > 0 && v < math.Inf(1)) {
			return invalid("class-weights: %s must be positive and finite, got %v", name, v)
		}
		if strings.Contains(name, ",") {
			return invalid("class-weights: the name of class %q has a comma, which separates classes", name)
		}
	}
	return nil
}

// guessing returns the entropy of the classes of images, weighted as in the loss: the loss of a
// network that predicts their frequencies for every image. weights is nil without class weights.
func guessing(d *datasets.Dataset, weights []float64) float64 {
	frequencies := make([]float64, d.Classes)
	for class, n := range d.Counts() {
		frequencies[class] = float64(n)
	}
	if weights != nil {
		floats.Mul(frequencies, weights)
	}
	floats.Scale(1/floats.Sum(frequencies), frequencies)
	return stat.Entropy(frequencies)
}

// of returns the weight of each class of data; nil for the zero value.
func (w ClassWeights) of(d *datasets.Dataset) ([]float64, error) {
	if w.isNone() {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.Of)) {
		if !slices.Contains(d.ClassNames, name) {
			return nil, invalid("class-weights: %s has no class %q; its classes are %s", d.Name, name, strings.Join(d.ClassNames, ", "))
		}
	}
	weights, counts := make([]float64, d.Classes), d.Counts()
	mean := 0.0
	for class := range weights {
		weights[class] = 1
		if w.Balanced && counts[class] > 0 {
			weights[class] = float64(d.Len()) / float64(d.Classes*counts[class])
		} else if given, ok := w.Of[d.ClassNames[class]]; ok {
			weights[class] = given
		}
		mean += weights[class] * float64(counts[class]) / float64(d.Len())
	}
	for class := range weights {
		weights[class] /= mean
	}
	return weights, nil
}
