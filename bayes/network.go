package bayes

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Build returns the network for a number of classes, from images to logits, with the layers that
// the method adds to it.
func (s Spec) Build(classes int) (network layers.Sequential, err error) {
	s = s.named()
	switch {
	case s.Layers != nil:
		network = s.Layers
	case s.isPretrained():
		var stem *pretrained.Stem
		if stem, err = s.stem(); err != nil {
			return nil, err
		}
		network, err = s.headNetwork(classes)
		network = append(layers.Sequential{stem}, network...)
	default:
		network, err = namedNetwork(s.Network, classes)
	}
	return s.completed(network, err)
}

// completed returns network with the layers that the method adds to it, or err if making network
// failed.
func (s Spec) completed(network layers.Sequential, err error) (layers.Sequential, error) {
	if err != nil {
		return nil, asInvalid(err)
	}
	c, err := kindOf(s.Method)
	if err != nil {
		return nil, err
	}
	if network, err = c.network(network); err != nil {
		return nil, &InvalidError{errors.WithMessage(err, "pollen: network")}
	}
	return network, nil
}

// parts returns the network in two stages, for the shape of images and a number of classes.
func (s Spec) parts(images samples.Images, classes int) (p parts, err error) {
	s = s.named()
	p.images = images.Empty()
	if !s.Frozen() {
		p.network, err = s.Build(classes)
		return p, err
	}
	stem, err := s.stem()
	if err != nil {
		return p, err
	}
	if p.network, err = s.completed(s.headNetwork(classes)); err != nil {
		return p, err
	}
	if p.frozen, err = stem.Frozen(images); err != nil {
		return p, &InvalidError{err}
	}
	return p, nil
}

// headParameters returns the names of the parameters after the cut, which start at random. A prior
// around starting values is refused for them, since these differ between chains.
func (s Spec) headParameters(images samples.Images, classes int) (names []string, err error) {
	if !s.isPretrained() {
		if s.hasStartPrior() {
			return nil, invalid("the prior start:S applies to networks of ONNX files, not to %s: other networks start at random values", s.NetworkName())
		}
		return nil, nil
	}
	stem, err := s.stem()
	if err != nil {
		return nil, err
	}
	width, err := stem.Width(images.Shape())
	if err != nil {
		return nil, &InvalidError{err}
	}
	head, err := s.completed(s.headNetwork(classes))
	if err != nil {
		return nil, err
	}
	// The names of a layer's parameters are known once it is in a graph, which is not compiled.
	b := graph.New(tensor.Float32)
	head.Apply(b, b.Data("input", tensor.Float32, 1, width))
	for _, parameter := range b.Parameters() {
		name := parameter.Name()
		for _, layer := range []string{name, langevin.LayerOf(name)} {
			if s.Priors[layer].Kind == langevin.StartPrior {
				return nil, invalid("priors: %s is after the cut and starts at random values, so that its prior cannot be start:S", layer)
			}
		}
		names = append(names, name)
	}
	if b.Err() != nil {
		return nil, &InvalidError{errors.WithMessagef(b.Err(), "pollen: head %s", s.Head)}
	}
	return names, nil
}

// ImageShape returns the shape of images that the network of an ONNX file reads. It is 0 for
// dimensions that the file leaves open, and for other networks.
func (s Spec) ImageShape() (channels, height, width int, err error) {
	if s = s.named(); !s.isPretrained() {
		return 0, 0, 0, nil
	}
	if channels, height, width, err = s.file.ImageShape(); err != nil {
		err = &InvalidError{err}
	}
	return channels, height, width, err
}
