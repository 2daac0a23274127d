package pollen

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// isNetworkFile reports whether a network is given as the text of a file rather than by name.
func isNetworkFile(text string) bool { return strings.ContainsAny(text, "\n{[:") }

// ownNetworks are those of RegisterNetwork.
var ownNetworks = map[string]layers.Sequential{}

// RegisterNetwork gives a network of one's own a name for Spec.Network: one whose layers are not
// those of package layers, such as an adopted stock.Network. A program that opens the run again
// must register it, too, at its start. A name that is taken is an error.
func RegisterNetwork(name string, network layers.Sequential) error {
	if name == "" || isNetworkFile(name) || strings.ContainsAny(name, ", ") || len(network) == 0 {
		return invalid("register: network %q of %d layers, wants a word and a layer at least", name, len(network))
	}
	if _, err := layers.New(name, 2); err == nil || ownNetworks[name] != nil {
		return invalid("register: there is a network %q already", name)
	}
	ownNetworks[name] = network
	return nil
}

// namedNetwork is the network with that name, or of that network file's text.
func namedNetwork(text string, classes int) (layers.Sequential, error) {
	if own := ownNetworks[text]; own != nil {
		return own, nil
	}
	if isNetworkFile(text) {
		return layers.Parse([]byte(text), classes)
	}
	return layers.New(text, classes)
}

// NetworkName is the name of the network; "network file" or "own layers" for one without.
func (s Spec) NetworkName() string {
	switch {
	case s.Layers != nil:
		return "own layers"
	case isNetworkFile(s.Network):
		return "network file"
	}
	return s.Network
}

// Build is the network for that many classes, from images to logits, with what the method adds to
// it.
func (s Spec) Build(classes int) (network layers.Sequential, err error) {
	s = s.named()
	c, err := kindOf(s.Method)
	if err != nil {
		return nil, err
	}
	if network = s.Layers; network == nil {
		if network, err = namedNetwork(s.Network, classes); err != nil {
			return nil, InvalidError{err}
		}
	}
	if network, err = c.network(network); err != nil {
		return nil, InvalidError{errors.WithMessage(err, "pollen: network")}
	}
	return network, nil
}

// written is the specification with custom layers as the text of a network file.
func (s Spec) written() (Spec, error) {
	if s.Layers == nil {
		return s, nil
	}
	text, err := layers.Format(s.Layers)
	if err != nil {
		return s, InvalidError{errors.WithMessage(err, "pollen: a run keeps its network as text, or by the name that RegisterNetwork gives it")}
	}
	s.Network, s.Layers = string(text), nil
	return s, nil
}

// checkNetwork refuses a network that does not map the images to a logit for each class.
func checkNetwork(network layers.Sequential, d Data) error {
	if err := layers.Check(network, tensor.Shape{d.Channels, d.Height, d.Width}, d.Classes()); err != nil {
		return InvalidError{err}
	}
	return nil
}
