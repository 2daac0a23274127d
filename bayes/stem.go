package bayes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/tensor"
)

// stem is the part of an ONNX network before the cut, from normalised images [B C H W] with the
// channels red, green and blue to features [B D].
type stem struct {
	network *onnx.Network
	name    string // of the file
	cut     string
	output  string // of the whole network
	format  inputFormat
	last    bool // channels are the last axis of the network's input
}

// Apply implements layers.Layer.
func (s *stem) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	shape := graph.ShapeOf(x)
	if b.Err() != nil {
		return nil
	}
	if s.format.reversed && len(shape) == 4 {
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
		b.Fail(errors.Errorf("pollen: model %s: a head reads vectors [B D], got %v at the value %q: %s", s.name, shape, s.cut, advice))
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

// width returns the number of features of an image of the given shape. It follows from the shapes
// in a graph, without any computation.
func (f *networkFile) width(s *stem, image tensor.Shape) (int, error) {
	key := fmt.Sprint(s.cut, s.format, image)
	f.mu.Lock()
	defer f.mu.Unlock()
	if width, ok := f.widths[key]; ok {
		return width, nil
	}
	b := graph.New(tensor.Float32)
	y := s.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, image...)...))
	if err := b.Err(); err != nil {
		return 0, &InvalidError{errors.WithMessagef(err, "pollen: model %s, for images of %v", s.name, image)}
	}
	f.widths[key] = graph.ShapeOf(y)[1]
	return f.widths[key], nil
}

// inputShape returns the shape of a model's images, with 0 for dimensions that it leaves open, and
// whether channels are the last axis.
func inputShape(m *onnx.Model) (channels, height, width int, last bool) {
	if len(m.Inputs) == 0 || len(m.Inputs[0].Shape) != 4 {
		return 0, 0, 0, false
	}
	// The file does not say which axis has the channels. Images have one to four, and are rarely so
	// few pixels wide.
	shape := m.Inputs[0].Shape
	areChannels := func(n int) bool { return n >= 1 && n <= 4 }
	if last = !areChannels(shape[1]) && areChannels(shape[3]); last {
		return shape[3], max(0, shape[1]), max(0, shape[2]), true
	}
	return max(0, shape[1]), max(0, shape[2]), max(0, shape[3]), false
}

// inputFormat describes how images are converted to the input of an ONNX network: (pixel/255 -
// mean)/std in each channel, with the channels red, green and blue, or reversed. mean and std have
// a number for each channel, or one for all.
type inputFormat struct {
	mean, std []float64
	reversed  bool
}

// inputPresets are the formats with names. Sources: torchvision's and timm's documentation of
// weights, Keras's of preprocess_input.
var inputPresets = []struct {
	name string
	inputFormat
}{
	{"imagenet", inputFormat{mean: []float64{0.485, 0.456, 0.406}, std: []float64{0.229, 0.224, 0.225}}},
	{"inception", inputFormat{mean: []float64{0.5}, std: []float64{0.5}}},
	{"none", inputFormat{mean: []float64{0}, std: []float64{1}}},
	{"bytes", inputFormat{mean: []float64{0}, std: []float64{1. / 255}}},
	{"caffe", inputFormat{
		mean: []float64{123.68 / 255, 116.779 / 255, 103.939 / 255}, std: []float64{1. / 255}, reversed: true,
	}},
}

const inputForm = "mean=R/G/B,std=R/G/B,order=bgr"

// parseInput reads a preset, or a text such as "mean=0.5/0.5/0.5,std=0.2,order=bgr".
func parseInput(text string) (f inputFormat, err error) {
	var names []string
	for _, p := range inputPresets {
		if p.name == text {
			return p.inputFormat, nil
		}
		names = append(names, p.name)
	}
	wrong := func() (inputFormat, error) {
		return f, invalid("input must be %s, or as in %s, with one number or one for each channel, and std positive, got %q",
			strings.Join(names, ", "), inputForm, text)
	}
	f.mean, f.std = []float64{0}, []float64{1}
	for _, item := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch strings.TrimSpace(name) {
		case "mean":
			if f.mean = parseChannels(value); f.mean == nil {
				return wrong()
			}
		case "std":
			if f.std = parseChannels(value); f.std == nil || slices.Min(f.std) <= 0 {
				return wrong()
			}
		case "order":
			if value != "rgb" && value != "bgr" {
				return wrong()
			}
			f.reversed = value == "bgr"
		default:
			return wrong()
		}
	}
	return f, nil
}

// parseChannels reads a number for all channels, or one for each; nil if these are not finite.
func parseChannels(text string) (values []float64) {
	for _, part := range strings.Split(text, "/") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || v-v != 0 {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// inputOf returns the format that a file's metadata describe, with the keys of ONNX's specification
// for images. Without these it is the format of ImageNet's networks.
func inputOf(metadata map[string]string) string {
	ranges := map[string]string{"Normalized_0_1": "none", "Normalized_1_1": "inception", "NominalRange_0_255": "bytes"}
	scaling := map[string]string{"none": "std=1", "inception": "mean=0.5,std=0.5", "bytes": "std=" + strconv.FormatFloat(1./255, 'g', -1, 64)}
	preset := ranges[metadata["Image.NominalPixelRange"]]
	if strings.HasPrefix(metadata["Image.BitmapPixelFormat"], "Bgr") {
		return cmp.Or(scaling[preset], "mean=0.485/0.456/0.406,std=0.229/0.224/0.225") + ",order=bgr"
	}
	return cmp.Or(preset, "imagenet")
}

// moments returns the mean and standard deviation for a number of channels. Grey images get the
// green channel's.
func (f inputFormat) moments(channels int) (mean, std []float64, err error) {
	for _, m := range []struct{ from, to *[]float64 }{{&f.mean, &mean}, {&f.std, &std}} {
		switch n := len(*m.from); {
		case n == 1:
			*m.to = slices.Repeat(*m.from, channels)
		case n == 3 && channels == 1:
			*m.to = (*m.from)[1:2:2]
		case n == channels:
			*m.to = *m.from
		default:
			return nil, nil, invalid("input must have one number, or one for each of %d channels, as in %s, got %d numbers", channels,
				"mean="+strings.Repeat("0.5/", channels-1)+"0.5", n)
		}
	}
	if f.reversed && channels != 1 && channels != 3 {
		return nil, nil, invalid("input must not have order=bgr for images of %d channels", channels)
	}
	return mean, std, nil
}
