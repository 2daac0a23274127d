package bayes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The values of Spec.Freeze that are not names, and the default of Spec.Head.
const (
	freezeAll  = "all"
	freezeNone = "none"
	headLinear = "linear"
	headMLP    = "mlp:"
)

// isONNX reports whether a network is the path of an ONNX file.
func isONNX(network string) bool {
	return strings.EqualFold(filepath.Ext(network), ".onnx") && !strings.Contains(network, "\n")
}

// isPretrained reports whether the network is an ONNX file with a new head.
func (s Spec) isPretrained() bool { return s.Layers == nil && isONNX(s.Network) }

// Frozen reports whether all weights of an ONNX file are frozen, so that features are computed
// once. The specification must be resolved.
func (s Spec) Frozen() bool { return s.isPretrained() && s.Freeze == freezeAll }

// networkFile is an ONNX file that a Spec names. It is read when it is first needed, and once for
// all copies of the Spec.
type networkFile struct {
	path   string // of the model
	digest string // that it must have; "" is any

	once  sync.Once
	model *onnx.Model
	sum   string // SHA-256 of the files
	files []modelPart
	err   error

	mu     sync.Mutex
	widths map[string]int // of features, by cut and shape of the images
	memory *featureMemory
}

// modelPart is one of the files of a model.
type modelPart struct {
	name    string // relative to the model's directory
	content []byte
}

// maxModel is the maximum size of an ONNX file and of its external data.
const maxModel = 1 << 31

func newNetworkFile(path, digest string) *networkFile {
	return &networkFile{path: path, digest: digest, widths: map[string]int{}, memory: &featureMemory{}}
}

// load reads the model, once: a later call returns the same model or the same error. If the model
// does not have the digest, the error is a DamagedError.
func (f *networkFile) load() (*onnx.Model, error) {
	f.once.Do(func() {
		f.err = f.read()
		if f.err == nil && f.digest != "" && f.sum != f.digest {
			f.err = errors.WithStack(&DamagedError{File: f.path, Cause: errors.Errorf("the SHA-256 of the model must be %s, got %s", f.digest, f.sum)})
		} else if f.err != nil && f.digest != "" {
			f.err = errors.WithStack(&DamagedError{File: f.path, Cause: f.err})
		}
	})
	return f.model, f.err
}

// read reads the model and the files of weights that it names, and sums their contents in the order
// in which they are read.
func (f *networkFile) read() error {
	content, err := file.Read(f.path, maxModel)
	if err != nil {
		return errors.Wrap(err, "pollen: model")
	}
	f.files = []modelPart{{filepath.Base(f.path), content}}
	hash := sha256.New()
	hash.Write(content)
	f.model, err = onnx.Read(content, func(name string) ([]byte, error) {
		// A model from a stranger must not make us read, and copy into the run, other files of the
		// machine.
		if !filepath.IsLocal(name) {
			return nil, errors.Errorf("must be a file below the model's directory, got %q", name)
		}
		external, err := file.Read(filepath.Join(filepath.Dir(f.path), name), maxModel)
		if err == nil {
			f.files = append(f.files, modelPart{name, external})
			hash.Write(external)
		}
		return external, err
	})
	if err != nil {
		return errors.WithMessagef(err, "pollen: model %s", f.path)
	}
	f.sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// ModelFile describes the ONNX file of a run, of which its directory has a copy.
type ModelFile struct {
	// Files are the names of the files in the directory rundir.ModelDir: that of the model, and
	// those of weights that it keeps elsewhere.
	Files []string `json:"files"`
	// Digest is the SHA-256 of their contents, one after the other, in hexadecimal digits.
	Digest string `json:"digest"`
}

// copyModel copies the model into the directory of a run, which can then be moved, and does not
// change if the original does.
func (s Spec) copyModel(dir string) (*ModelFile, error) {
	if !s.isPretrained() {
		return nil, nil
	}
	if _, err := s.file.load(); err != nil {
		return nil, err
	}
	m := &ModelFile{Digest: s.file.sum}
	for _, part := range s.file.files {
		path := filepath.Join(dir, rundir.ModelDir, filepath.FromSlash(part.name))
		if err := file.MakeDir(filepath.Dir(path)); err != nil {
			return nil, errors.Wrap(err, "pollen: model")
		}
		if err := file.Write(path, part.content); err != nil {
			return nil, errors.Wrap(err, "pollen: model")
		}
		m.Files = append(m.Files, filepath.ToSlash(part.name))
	}
	return m, nil
}

// copiedModel returns the copy of the model in the directory of a run.
func (m *Manifest) copiedModel(dir string) (*networkFile, error) {
	if m.Model == nil || len(m.Model.Files) == 0 || !filepath.IsLocal(filepath.FromSlash(m.Model.Files[0])) {
		return nil, errors.New("pollen: manifest: model must have at least one file below the run's directory")
	}
	return newNetworkFile(filepath.Join(dir, rundir.ModelDir, filepath.FromSlash(m.Model.Files[0])), m.Model.Digest), nil
}

// checkPretrained refuses settings that apply only to ONNX files, and values that cannot be read.
func (s Spec) checkPretrained() error {
	for name, text := range map[string]string{"cut": s.Cut, "head": s.Head, "freeze": s.Freeze, "input": s.Input} {
		if text != "" && !s.isPretrained() {
			return invalid("%s applies to networks of ONNX files, such as model backbone.onnx, not to %s", name, s.NetworkName())
		}
	}
	if s.Input != "" {
		if _, err := parseInput(s.Input); err != nil {
			return err
		}
	}
	if s.isPretrained() && s.Head != "" {
		if _, err := s.headNetwork(2); err != nil {
			return err
		}
	}
	return nil
}

// withModel returns the specification with the cut and the input that its file has, unless they
// are given.
func (s Spec) withModel() (Spec, error) {
	if !s.isPretrained() {
		return s, nil
	}
	model, err := s.file.load()
	if err != nil {
		return s, InvalidError{err}
	}
	if s.Cut == "" {
		s.Cut, err = model.LastLinear()
	} else {
		s.Cut, err = model.Value(s.Cut)
	}
	if err != nil {
		return s, invalid("model %s: %v; give the value to cut at with cut", s.Network, err)
	}
	if s.Input == "" {
		s.Input = inputOf(model.Metadata)
	}
	return s, nil
}

// startsAt reports whether the prior of a weight of an ONNX file is one around its value. Its
// parameter is then the offset from that.
func (s Spec) startsAt(weight string) bool {
	p := langevin.Posterior{Layers: s.Priors}
	if s.Prior != nil {
		p.Prior = *s.Prior
	}
	return p.PriorOf(weight).Kind == langevin.StartPrior
}

// headParameters returns the names of the parameters after the cut, which start at random. A prior
// around their starting values is refused, since these differ between chains.
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
	width, err := s.file.width(stem, images.Shape())
	if err != nil {
		return nil, err
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
		return nil, InvalidError{errors.WithMessagef(b.Err(), "pollen: head %s", s.Head)}
	}
	return names, nil
}

// A prior start:S is N(w, S^2) around the value w that a weight has in the file, so that training
// from there is sampling a posterior, and not only a way to start.

// hasStartPrior reports whether a prior is one around starting values.
func (s Spec) hasStartPrior() bool {
	is := func(p langevin.Prior) bool { return p.Kind == langevin.StartPrior }
	return s.Prior != nil && is(*s.Prior) || slices.ContainsFunc(slices.Collect(maps.Values(s.Priors)), is)
}

// headNetwork returns the layers after the cut.
func (s Spec) headNetwork(classes int) (layers.Sequential, error) {
	sizes, isMLP := strings.CutPrefix(s.Head, headMLP)
	switch {
	case s.Head == headLinear:
		return layers.Sequential{layers.Linear{Name: "head", Outputs: classes}}, nil
	case !isMLP:
		return namedNetwork(s.Head, classes)
	}
	var head layers.Sequential
	for i, text := range strings.Split(sizes, "-") {
		width, err := strconv.Atoi(text)
		if err != nil || width < 1 {
			return nil, invalid("head must be %s, %sWIDTH with a width of at least 1, such as %s64, or a network, got %q", headLinear, headMLP, headMLP, s.Head)
		}
		head = append(head, layers.Linear{Name: fmt.Sprint("hidden", i+1), Outputs: width}, layers.ReLU{})
	}
	return append(head, layers.Linear{Name: "head", Outputs: classes}), nil
}

// stem is the part of an ONNX network before the cut, from normalised images [B C H W] with the
// channels red, green and blue to features [B D].
type stem struct {
	network *onnx.Network
	name    string // of the file
	cut     string
	format  inputFormat
	last    bool // channels are the last axis of the network's input
}

// stem returns the part before the cut. The network is read twice: the names of its weights, by
// which freeze chooses, are known only after it was read once with none of them frozen.
func (s Spec) stem() (*stem, error) {
	model, err := s.file.load()
	if err != nil {
		return nil, err
	}
	s, err = s.withModel()
	if err != nil {
		return nil, err
	}
	format, err := parseInput(s.Input)
	if err != nil {
		return nil, err
	}
	network, err := model.Network(onnx.Options{Output: s.Cut})
	if err != nil {
		return nil, InvalidError{errors.WithMessagef(err, "pollen: model %s", s.Network)}
	}
	frozen, err := s.frozenWeights(network.Weights())
	if err != nil {
		return nil, err
	}
	if network, err = model.Network(onnx.Options{Output: s.Cut, Frozen: frozen, Offset: s.startsAt}); err != nil {
		return nil, err
	}
	_, _, _, last := inputShape(model)
	return &stem{network: network, name: s.Network, cut: s.Cut, format: format, last: last}, nil
}

// frozenWeights returns which of some weights are frozen. A name freezes the weight of that name
// and all weights below it, as in features.0 for features.0.weight.
func (s Spec) frozenWeights(weights []string) (func(name string) bool, error) {
	switch s.Freeze {
	case freezeAll, "":
		return func(string) bool { return true }, nil
	case freezeNone:
		return func(string) bool { return false }, nil
	}
	names := strings.Split(s.Freeze, ",")
	is := func(weight, name string) bool {
		return weight == name || strings.HasPrefix(weight, name+".") || strings.HasPrefix(weight, name+"/")
	}
	for _, name := range names {
		if !slices.ContainsFunc(weights, func(weight string) bool { return is(weight, name) }) {
			few := weights[:min(len(weights), 8)]
			return nil, invalid("freeze must be %s, %s or names of weights of %s, separated by commas, got %q; it has %d weights: %s ...",
				freezeAll, freezeNone, s.Network, name, len(weights), strings.Join(few, ", "))
		}
	}
	return func(weight string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return is(weight, name) })
	}, nil
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
		b.Fail(errors.Errorf("pollen: model %s: a head reads vectors [B D], got %v at the value %q: cut the network after its pooling, with cut",
			s.name, shape, s.cut))
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
		return 0, InvalidError{errors.WithMessagef(err, "pollen: model %s, for images of %v", s.name, image)}
	}
	f.widths[key] = graph.ShapeOf(y)[1]
	return f.widths[key], nil
}

// inputShape returns the shape of a model's images, 0 for what it leaves open, and whether channels
// are the last axis.
func inputShape(m *onnx.Model) (channels, height, width int, last bool) {
	if len(m.Inputs) == 0 || len(m.Inputs[0].Shape) != 4 {
		return 0, 0, 0, false
	}
	// The file does not say which axis has the channels. Images are grey or have three colours, and
	// are rarely one or three pixels wide.
	shape := m.Inputs[0].Shape
	isColour := func(n int) bool { return n == 1 || n == 3 }
	if last = !isColour(shape[1]) && isColour(shape[3]); last {
		return shape[3], max(0, shape[1]), max(0, shape[2]), true
	}
	return max(0, shape[1]), max(0, shape[2]), max(0, shape[3]), false
}

// ImageShape returns the shape of images that the network of an ONNX file reads, 0 for what the
// file leaves open, and for other networks.
func (s Spec) ImageShape() (channels, height, width int, err error) {
	if s = s.named(); !s.isPretrained() {
		return 0, 0, 0, nil
	}
	model, err := s.file.load()
	if err != nil {
		return 0, 0, 0, InvalidError{err}
	}
	channels, height, width, _ = inputShape(model)
	return channels, height, width, nil
}

// inputFormat is how images become the input of an ONNX network: (pixel/255 - mean)/std in each
// channel, with the channels red, green and blue, or reversed.
type inputFormat struct {
	mean, std [3]float64
	reversed  bool
}

// inputPresets are the formats with names. Sources: torchvision's and timm's documentation of
// weights, Keras's of preprocess_input.
var inputPresets = []struct {
	name string
	inputFormat
}{
	{"imagenet", inputFormat{mean: [3]float64{0.485, 0.456, 0.406}, std: [3]float64{0.229, 0.224, 0.225}}},
	{"inception", inputFormat{mean: [3]float64{0.5, 0.5, 0.5}, std: [3]float64{0.5, 0.5, 0.5}}},
	{"none", inputFormat{std: [3]float64{1, 1, 1}}},
	{"bytes", inputFormat{std: [3]float64{1. / 255, 1. / 255, 1. / 255}}},
	{"caffe", inputFormat{
		mean: [3]float64{123.68 / 255, 116.779 / 255, 103.939 / 255}, std: [3]float64{1. / 255, 1. / 255, 1. / 255}, reversed: true,
	}},
}

const inputForm = "mean=R/G/B,std=R/G/B,order=bgr"

// InputNames returns the names of the presets of Spec.Input.
func InputNames() []string {
	var names []string
	for _, p := range inputPresets {
		names = append(names, p.name)
	}
	return names
}

// parseInput reads a preset, or a text such as "mean=0.5/0.5/0.5,std=0.2,order=bgr".
func parseInput(text string) (f inputFormat, err error) {
	for _, p := range inputPresets {
		if p.name == text {
			return p.inputFormat, nil
		}
	}
	wrong := func() (inputFormat, error) {
		return f, invalid("input must be %s, or as in %s, with one number or three, and std positive, got %q", strings.Join(InputNames(), ", "), inputForm, text)
	}
	f.std = [3]float64{1, 1, 1}
	for _, item := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch strings.TrimSpace(name) {
		case "mean":
			if !parseChannels(value, &f.mean) {
				return wrong()
			}
		case "std":
			if !parseChannels(value, &f.std) || slices.Min(f.std[:]) <= 0 {
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

// parseChannels reads a number for all channels, or one for each.
func parseChannels(text string, to *[3]float64) bool {
	parts := strings.Split(text, "/")
	if len(parts) != 1 && len(parts) != len(to) {
		return false
	}
	for c := range to {
		v, err := strconv.ParseFloat(strings.TrimSpace(parts[min(c, len(parts)-1)]), 64)
		if err != nil || v-v != 0 {
			return false
		}
		to[c] = v
	}
	return true
}

// inputOf returns the format that a file's metadata describe, with the keys of ONNX's specification
// for images, and that of ImageNet's networks without them.
func inputOf(metadata map[string]string) string {
	ranges := map[string]string{"Normalized_0_1": "none", "Normalized_1_1": "inception", "NominalRange_0_255": "bytes"}
	scaling := map[string]string{"none": "std=1", "inception": "mean=0.5,std=0.5", "bytes": "std=" + strconv.FormatFloat(1./255, 'g', -1, 64)}
	preset := ranges[metadata["Image.NominalPixelRange"]]
	if strings.HasPrefix(metadata["Image.BitmapPixelFormat"], "Bgr") {
		return cmp.Or(scaling[preset], "mean=0.485/0.456/0.406,std=0.229/0.224/0.225") + ",order=bgr"
	}
	return cmp.Or(preset, "imagenet")
}

// moments returns the mean and standard deviation for a number of channels. Grey images have those
// of green.
func (f inputFormat) moments(channels int) (mean, std []float64) {
	if channels == 1 {
		return f.mean[1:2:2], f.std[1:2:2]
	}
	return f.mean[:], f.std[:]
}
