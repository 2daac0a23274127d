package pretrained

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/tensor"
)

// Options are how a network is cut and used.
type Options struct {
	// Cut is the value at which the network ends, and Input the text of an Input; "" is as for
	// File.Resolve.
	Cut, Input string
	// Freeze is FreezeAll, FreezeNone, or names of weights that are frozen, separated by commas; ""
	// is FreezeAll. A name freezes the weight of that name and all weights below it, as in
	// features.0 for features.0.weight.
	Freeze string
	// Offset reports whether the parameter of a weight is its offset from the value in the file.
	Offset func(weight string) bool
}

// The values of Options.Freeze that are not names.
const (
	FreezeAll  = "all"
	FreezeNone = "none"
)

// Stem is the part of a network before the cut. It is a layer from normalised images [B C H W] with
// the channels red, green and blue to features [B D].
type Stem struct {
	file    *File
	network *onnx.Network
	cut     string
	output  string // of the whole network
	input   Input
	last    bool // channels are the last axis of the network's input
}

// Stem returns the part of the network before the cut. The network is made twice: Options.Freeze
// chooses weights by name, and the names are known only after making it once with all weights free.
func (f *File) Stem(o Options) (*Stem, error) {
	model, err := f.load()
	if err != nil {
		return nil, err
	}
	s := &Stem{file: f}
	if s.cut, o.Input, err = f.Resolve(o.Cut, o.Input); err != nil {
		return nil, err
	}
	if s.input, err = ParseInput(o.Input); err != nil {
		return nil, err
	}
	free, err := model.Network(onnx.Options{Output: s.cut})
	if err != nil {
		return nil, errors.WithMessagef(err, "pollen: model %s", f.name)
	}
	frozen, err := frozenWeights(o.Freeze, f.name, free.Weights())
	if err != nil {
		return nil, err
	}
	if s.network, err = model.Network(onnx.Options{Output: s.cut, Frozen: frozen, Offset: o.Offset}); err != nil {
		return nil, err
	}
	_, _, _, s.last = inputShape(model)
	s.output = s.cut
	if len(model.Outputs) > 0 {
		s.output = model.Outputs[0].Name
	}
	return s, nil
}

// frozenWeights returns a function that reports whether a weight is frozen, see Options.Freeze.
func frozenWeights(freeze, network string, weights []string) (func(name string) bool, error) {
	switch freeze {
	case FreezeAll, "":
		return func(string) bool { return true }, nil
	case FreezeNone:
		return func(string) bool { return false }, nil
	}
	names := strings.Split(freeze, ",")
	is := func(weight, name string) bool {
		return weight == name || strings.HasPrefix(weight, name+".") || strings.HasPrefix(weight, name+"/")
	}
	for _, name := range names {
		if !slices.ContainsFunc(weights, func(weight string) bool { return is(weight, name) }) {
			few := weights[:min(len(weights), 8)]
			advice := ""
			if slices.ContainsFunc(weights, func(weight string) bool { return strings.HasPrefix(weight, "onnx::") }) {
				advice = "; the exporter made up such names: torch.onnx.export with dynamo=True keeps those of the network"
			}
			return nil, errors.Errorf("pollen: freeze must be %s, %s or names of weights of %s, separated by commas, got %q; it has %d weights: %s ...%s",
				FreezeAll, FreezeNone, network, name, len(weights), strings.Join(few, ", "), advice)
		}
	}
	return func(weight string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return is(weight, name) })
	}, nil
}

// Starts returns, by name, the values in the file of the weights whose parameters are offsets.
func (s *Stem) Starts() map[string][]float64 { return s.network.Starts() }

// FanIns returns the fan-ins of the weights, see langevin.Posterior.
func (s *Stem) FanIns() map[string]int { return s.network.FanIns() }

// Width returns the number of features of an image of the given shape. It follows from the shapes
// in a graph, without any computation.
func (s *Stem) Width(image tensor.Shape) (int, error) {
	key := fmt.Sprint(s.cut, s.input, image)
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	if width, ok := s.file.widths[key]; ok {
		return width, nil
	}
	b := graph.New(tensor.Float32)
	y := s.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, image...)...))
	if err := b.Err(); err != nil {
		return 0, errors.WithMessagef(err, "pollen: model %s, for images of %v", s.file.name, image)
	}
	s.file.widths[key] = graph.ShapeOf(y)[1]
	return s.file.widths[key], nil
}

// Apply implements layers.Layer.
func (s *Stem) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	shape := graph.ShapeOf(x)
	if b.Err() != nil {
		return nil
	}
	if s.input.reversed && len(shape) == 4 {
		x = reverseChannels(b, x)
	}
	if s.last && len(shape) == 4 {
		x = b.Apply(array.TransposeBy(0, 2, 3, 1), x)
	}
	y := s.network.Apply(b, x)
	if b.Err() != nil {
		return nil
	}
	if shape := graph.ShapeOf(y); len(shape) != 2 {
		advice := fmt.Sprintf("cut the network after its pooling, with cut; its output is %q", s.output)
		if s.cut == s.output {
			advice = "the network ends before its pooling: export it with a global average pool or a classifier, not as a map of features"
		}
		b.Fail(errors.Errorf("pollen: model %s: a head reads vectors [B D], got %v at the value %q: %s", s.file.name, shape, s.cut, advice))
		return nil
	}
	return y
}

// reverseChannels returns the channels of images [B C H W] in reverse order, as networks from Caffe
// read them. There is no op for that: each channel is cut out and put at its new place among zeros,
// and the sum of these has all channels.
func reverseChannels(b *graph.Builder, x *graph.Node) (y *graph.Node) {
	channels := graph.ShapeOf(x)[1]
	for c := range channels {
		from, to := array.Slice{Axis: 1, Start: c, Step: 1, Count: 1}, array.Slice{Axis: 1, Start: channels - 1 - c, Step: 1, Count: 1}
		one := b.Apply(array.Unslice{Slice: to, Extent: channels}, b.Apply(from, x))
		if y != nil {
			one = b.Apply(op.Add{}, y, one)
		}
		y = one
	}
	return y
}
