package export

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// ONNXOptions are the options of an ONNX file.
type ONNXOptions struct {
	// Samples is the number of samples in the file, evenly spaced among the run's. 0 is all.
	Samples int
	// Float makes the input float32 in [0, 1] rather than bytes.
	Float bool
	// Level is the probability with which prediction sets contain the true class, and Rate the
	// fraction of in-distribution images that are recognized as such; 0.9 and 0.95 if they are 0.
	Level, Rate float64
	// Unscaled leaves the probabilities as averaged over the samples, as bayes.WithUnscaled does.
	Unscaled bool
	// Sets is the rule of prediction sets, which must not be randomized.
	Sets evaluate.SetRule
	// HeldOut are images like those that the run was calibrated on. Prediction sets of fewer
	// samples than the run has need them, since quantiles hold for one average only.
	HeldOut *datasets.Dataset
	// Together is the number of samples that the same nodes compute; 0 is 1. A larger number
	// takes less time for a single image, but more time and memory for many.
	Together int
}

// The names of the outputs of an ONNX file.
const (
	probabilitiesOutput  = "probabilities"
	entropyOutput        = "entropy"
	mutualOutput         = "mutual_information"
	setOutput            = "prediction_set"
	inDistributionOutput = "in_distribution"
)

// ONNX writes the posterior predictive of a run to one ONNX file, and returns remarks about
// omitted outputs. The model's input is images [batch C H W]. Its outputs are
//
//	probabilities       float [batch K]  the probabilities of the classes
//	entropy             float [batch]    the entropy of the average over the samples, in nats
//	mutual_information  float [batch]    the part of it that comes from samples that disagree
//	prediction_set      bool  [batch K]  the classes of the conformal prediction set
//	in_distribution     bool  [batch]    whether the image is like those trained on
//
// The probabilities are scaled to fit the calibration images, if there are any, see bayes.Answer.
// The last two outputs exist if the run is calibrated for them. The error is bayes.InvalidError for
// options out of range, and for a run with Monte Carlo dropout, whose masks are random. It is an
// onnx.UnwritableError if a file cannot have the network or all samples.
func ONNX(ctx context.Context, run *bayes.Run, path string, o ONNXOptions) (remarks []string, err error) {
	pending, err := file.Create(path) // first, since it may fail
	if err != nil {
		return nil, errors.Wrap(err, "export: onnx")
	}
	defer pending.Close()
	w, remarks, err := newONNX(ctx, run, o)
	if err != nil {
		return nil, err
	}
	if _, err := w.WriteTo(pending); err != nil {
		return nil, err
	}
	return remarks, errors.Wrap(pending.Commit(), "export: onnx")
}

func invalid(format string, arguments ...any) error {
	return &bayes.InvalidError{Cause: errors.Errorf("export: "+format, arguments...)}
}

// predictive builds the model of a posterior predictive.
type predictive struct {
	w        *onnx.Writer
	o        ONNXOptions
	m        bayes.Manifest
	draws    *bayes.Draws
	chosen   []int // the positions of the samples
	weights  []float32
	detector *detector.Detector // nil if there is no in_distribution
	remarks  []string

	frozen   *stage        // nil if no part of the network is frozen
	sampled  stage         // maps images, or the output of frozen, to logits
	features []*graph.Node // nodes of sampled that the detector compares
}

// stage is the graph of a part of the network.
type stage struct {
	b             *graph.Builder
	input, output *graph.Node
}

func newONNX(ctx context.Context, run *bayes.Run, o ONNXOptions) (*onnx.Writer, []string, error) {
	p := &predictive{w: &onnx.Writer{Producer: "pollen"}, o: o, m: run.Manifest()}
	if err := p.choose(run); err != nil {
		return nil, nil, err
	}
	if err := p.build(); err != nil {
		return nil, nil, err
	}
	own, decisions, err := p.calibrate(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	if p.detector, err = p.usableDetector(decisions); err != nil {
		return nil, nil, err
	}
	pixels, x := p.images()
	if x, err = p.backbone(x); err != nil {
		return nil, nil, err
	}
	logits, features, err := p.networks(x)
	if err != nil {
		return nil, nil, err
	}
	p.w.Scope("")
	if err := p.uncertainty(logits, own); err != nil {
		return nil, nil, err
	}
	if p.detector != nil {
		if err := p.inDistribution(pixels, features, decisions); err != nil {
			return nil, nil, err
		}
	}
	return p.w, p.remarks, p.describe(own)
}

func (p *predictive) remark(format string, arguments ...any) {
	p.remarks = append(p.remarks, fmt.Sprintf(format, arguments...))
}

// choose lists the samples of the run, and chooses the samples for the file.
func (p *predictive) choose(run *bayes.Run) (err error) {
	switch {
	case p.o.Samples < 0:
		return invalid("samples must be at least 1, got %d", p.o.Samples)
	case p.o.Together < 0:
		return invalid("together must be at least 1, got %d", p.o.Together)
	}
	p.o.Level, p.o.Rate = cmp.Or(p.o.Level, defaultLevel), cmp.Or(p.o.Rate, defaultRate)
	if !(p.o.Level > 0 && p.o.Level < 1 && p.o.Rate > 0 && p.o.Rate < 1) {
		return invalid("level and in-distribution rate must be between 0 and 1, got %v and %v", p.o.Level, p.o.Rate)
	}
	if p.o.Sets.Randomized {
		return invalid("onnx: randomized prediction sets depend on a hash of the probabilities, which an ONNX file cannot compute")
	}
	if err := p.o.Sets.Validate(); err != nil {
		return &bayes.InvalidError{Cause: err}
	}
	if p.draws, err = run.Draws(); err != nil {
		return err
	}
	passes := p.draws.Passes()
	switch n := p.draws.Len(); {
	case onnxRefusal(run, passes) != nil:
		return onnxRefusal(run, passes)
	case p.o.Samples > n:
		return invalid("samples must be at most the %d of %s, got %d", n, run.Dir(), p.o.Samples)
	case p.o.Samples == 0:
		p.o.Samples = n
	}
	p.chosen = spaced(p.draws.Len(), p.o.Samples)
	return nil
}

// onnxRefusal returns an InvalidError if an ONNX file cannot compute what a run predicts with a
// number of passes of each sample.
func onnxRefusal(run *bayes.Run, passes int) error {
	if passes > 1 {
		return invalid("onnx: %s predicts with random dropout masks, which an ONNX file cannot repeat; use another method", run.Dir())
	}
	return nil
}

const (
	defaultLevel = 0.9
	defaultRate  = 0.95
)

// spaced returns k evenly spaced numbers below n, ending with n-1.
func spaced(n, k int) []int {
	positions := make([]int, k)
	for i := range positions {
		positions[i] = (i+1)*n/k - 1
	}
	return positions
}

// build builds the graphs of the network for one image: of its frozen part, if it has one, and of
// the part whose weights are sampled.
func (p *predictive) build() error {
	frozen, sampled, err := p.draws.Stages()
	if err != nil {
		return err
	}
	d, shape := &p.m.Data, []int{1, p.m.Data.Channels, p.m.Data.Height, p.m.Data.Width}
	if frozen != nil {
		b := newGraph()
		p.frozen = &stage{b: b, input: b.Data("images", tensor.Float32, 1, d.Channels, d.Height, d.Width)}
		p.frozen.output = frozen.Apply(b, p.frozen.input)
		if err := b.Err(); err != nil {
			return err
		}
		shape = graph.ShapeOf(p.frozen.output)
	}
	b := newGraph()
	p.sampled = stage{b: b, input: b.Data("input", tensor.Float32, shape...)}
	p.sampled.output = sampled.Apply(b, p.sampled.input)
	p.features = samples.LayerInputs(b)
	return b.Err()
}

func newGraph() *graph.Builder {
	b := graph.New(tensor.Float32)
	b.Mode = graph.Prediction
	return b
}

// calibrate returns the calibration for the samples of the file, and the one for in-distribution
// decisions. Either is nil if there is none.
func (p *predictive) calibrate(ctx context.Context, run *bayes.Run) (own, decisions *evaluate.Calibration, err error) {
	all, err := p.draws.Calibration()
	if err != nil {
		return nil, nil, err
	}
	if all == nil {
		p.remark("the run has no calibration for its samples: the file has no prediction sets and no in-distribution decisions, " +
			"and its probabilities are not scaled")
		return nil, nil, nil
	}
	own = all
	switch {
	case len(p.chosen) == p.draws.Len():
	case p.o.HeldOut == nil:
		p.remark("the run was calibrated with %d samples, and no held-out images are given to calibrate %d again: the file has no prediction sets, "+
			"and its probabilities are not scaled", all.Samples, len(p.chosen))
		return nil, all, nil
	default:
		if own, err = p.calibrateChosen(ctx, run); err != nil {
			return nil, nil, err
		}
	}
	if !own.Supports(p.o.Level) {
		p.remark("prediction sets at level %v need more than %d held-out images: the file has none", p.o.Level, own.Examples)
	}
	return own, all, nil
}

// calibrateChosen calibrates the averaged prediction of the samples of the file.
func (p *predictive) calibrateChosen(ctx context.Context, run *bayes.Run) (*evaluate.Calibration, error) {
	average, err := evaluate.NewPredictive(p.o.HeldOut.Len(), p.m.Data.Classes())
	if err != nil {
		return nil, err
	}
	position := 0
	_, err = run.Predictions(ctx, p.o.HeldOut, func(probabilities []float32, weight float64) error {
		defer func() { position++ }()
		if slices.Contains(p.chosen, position) {
			return average.Add(probabilities, weight)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	labels, err := run.Labels(p.o.HeldOut)
	if err != nil {
		return nil, err
	}
	predictions := average.Predictions(p.o.HeldOut.Name, labels)
	predictions.Groups = p.o.HeldOut.Groups
	return evaluate.Calibrate(predictions)
}

// usableDetector returns the run's detector if it can decide with the samples of the file.
func (p *predictive) usableDetector(c *evaluate.Calibration) (*detector.Detector, error) {
	d, err := p.draws.Detector()
	switch {
	case err != nil || c == nil:
		return nil, err
	case d == nil || c.Nonconformity == nil:
		p.remark("the run has no detector with calibrated scores: the file has no in-distribution decisions")
		return nil, nil
	case !c.Decides(p.o.Rate):
		p.remark("in-distribution decisions at a rate of %v need more than %d held-out images: the file has none", p.o.Rate, c.Examples)
		return nil, nil
	}
	for _, m := range d.Members {
		if !slices.Contains(p.chosen, m.Position) {
			p.remark("in-distribution decisions need the %d samples of the run's detector, which are not among the %d of the file: it has none; "+
				"use a multiple of %d samples that divides %d, or all", len(d.Members), len(p.chosen), len(d.Members), p.draws.Len())
			return nil, nil
		}
	}
	return d, nil
}

// images declares the input. It returns the names of two values: its pixels from 0 to 255, and
// the network's input.
func (p *predictive) images() (pixels, x string) {
	w, d := p.w, &p.m.Data
	kind, unit := onnx.Uint8, 255.0
	if p.o.Float {
		kind, unit = onnx.Float32, 1
	}
	pixels = w.Input("images", kind, -1, d.Channels, d.Height, d.Width)
	w.Scope("input")
	if !p.o.Float {
		pixels = w.Node("Cast", onnx.Attributes{"to": int(onnx.Float32)}, pixels)
	}
	factors, offsets := make([]float32, d.Channels), make([]float32, d.Channels)
	for c := range factors {
		factors[c], offsets[c] = float32(1/(unit*d.Std[c])), float32(-d.Mean[c]/d.Std[c])
	}
	x = w.Node("Mul", nil, pixels, w.Floats("factor", factors, d.Channels, 1, 1))
	x = w.Node("Add", nil, x, w.Floats("offset", offsets, d.Channels, 1, 1))
	if p.o.Float && p.detector != nil { // the detector compares statistics of bytes
		pixels = w.Node("Round", nil, w.Node("Mul", nil, pixels, w.Float("bytes", 255)))
	}
	return pixels, x
}

// backbone adds the frozen part of the network, if there is one, and returns the name of its
// output, which the sampled part reads.
func (p *predictive) backbone(x string) (string, error) {
	if p.frozen == nil {
		return x, nil
	}
	const scope = "frozen"
	e, err := p.w.Emit(p.frozen.b, p.frozen.input, x, make([][][]float32, 1), scope)
	if err != nil {
		return "", err
	}
	p.w.Scope(scope)
	y, _, err := e.Value(p.frozen.output)
	return y, err
}

// networks adds the sampled network for all samples. It returns the logits [S batch K] and, for
// the detector's members, the features [M batch F].
func (p *predictive) networks(x string) (logits, features string, err error) {
	together := max(1, p.o.Together)
	var allLogits, allFeatures []string
	for from := 0; from < len(p.chosen); from += together {
		group := p.chosen[from:min(from+together, len(p.chosen))]
		scope := ""
		if len(group) < len(p.chosen) {
			scope = "samples" + strconv.Itoa(from)
		}
		e, err := p.emit(x, group, scope)
		if err != nil {
			return "", "", err
		}
		p.w.Scope(scope)
		y, stacked, err := e.Value(p.sampled.output)
		if err != nil {
			return "", "", err
		}
		if !stacked {
			y = p.w.Node("Unsqueeze", nil, y, p.w.Integers("axis", 0))
		}
		allLogits = append(allLogits, y)
		if members := p.members(group); len(members) > 0 {
			f, err := p.featuresOf(e, members, len(group))
			if err != nil {
				return "", "", err
			}
			allFeatures = append(allFeatures, f)
		}
	}
	p.w.Scope("")
	return p.concat(0, allLogits), p.concat(0, allFeatures), nil
}

// concat joins values along an axis; "" if there are none.
func (p *predictive) concat(axis int, values []string) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	return p.w.Node("Concat", onnx.Attributes{"axis": axis}, values...)
}

// emit adds the network with the weights of the samples at the given positions.
func (p *predictive) emit(x string, positions []int, scope string) (*onnx.Emission, error) {
	var values [][][]float32
	parameters := p.sampled.b.Parameters()
	for _, position := range positions {
		s, err := p.draws.Read(position)
		if err != nil {
			return nil, err
		}
		if len(s.Parameters) != len(parameters) {
			return nil, errors.Errorf("export: a sample must have the %d parameters of the network, got %d", len(parameters), len(s.Parameters))
		}
		var sample [][]float32
		for _, q := range s.Parameters {
			sample = append(sample, q.Values)
		}
		values, p.weights = append(values, sample), append(p.weights, float32(s.Weight))
	}
	return p.w.Emit(p.sampled.b, p.sampled.input, x, values, scope)
}

// uncertainty adds the outputs that are computed from the logits [S batch K]. c is the
// calibration for the samples of the file, or nil.
func (p *predictive) uncertainty(logits string, c *evaluate.Calibration) error {
	w, k := p.w, p.m.Data.Classes()
	total := float32(0)
	for _, weight := range p.weights {
		total += weight
	}
	shares := make([]float32, len(p.weights))
	for i, weight := range p.weights {
		shares[i] = weight / total
	}
	each := w.Node("Softmax", onnx.Attributes{"axis": 2}, logits)
	weights, samplesAxis, classesAxis := w.Floats("weights", shares, len(shares), 1, 1), w.Integers("samples", 0), w.Integers("classes", -1)
	over := onnx.Attributes{"keepdims": 0}
	mean := w.Node("ReduceSum", over, w.Node("Mul", nil, each, weights), samplesAxis)
	smallest, minus := w.Float("smallest", 1e-37), w.Float("minus", -1)
	entropy := func(of string) string { // over the last axis
		terms := w.Node("Mul", nil, of, w.Node("Log", nil, w.Node("Max", nil, of, smallest)))
		return w.Node("Mul", nil, w.Node("ReduceSum", over, terms, classesAxis), minus)
	}
	all := entropy(mean)
	averaged := func(of string) string { // over the samples
		return w.Node("ReduceSum", over, w.Node("Mul", nil, of, w.Floats("weights", shares, len(shares), 1)), samplesAxis)
	}
	mutual := w.Node("Sub", nil, all, averaged(entropy(each)))
	if p.m.Teacher != nil { // each sample is a Dirichlet distribution
		mutual = w.Node("Add", nil, mutual, averaged(p.dirichletInformation(logits, each)))
	}
	probabilities := mean
	if c != nil && !p.o.Unscaled { // see evaluate.Calibration.Scaled
		powers := w.Node("Mul", nil, w.Node("Log", nil, mean), w.Float("exponent", c.Exponent)) // logarithms; a 0 stays 0
		probabilities = w.Node("Softmax", onnx.Attributes{"axis": 1}, powers)
	}
	w.Output(probabilitiesOutput, probabilities, onnx.Float32, -1, k)
	w.Output(entropyOutput, all, onnx.Float32, -1)
	w.Output(mutualOutput, w.Node("Max", nil, mutual, w.Float("zero", 0)), onnx.Float32, -1)
	if !p.hasSets(c) {
		return nil
	}
	return p.predictionSets(mean, c)
}

// hasSets reports whether the file has prediction sets by a calibration, which may be nil.
func (p *predictive) hasSets(c *evaluate.Calibration) bool { return c != nil && c.Supports(p.o.Level) }

// describe adds the metadata. own is the calibration for the samples of the file, or nil.
func (p *predictive) describe(own *evaluate.Calibration) error {
	digest, err := p.draws.Digest()
	if err != nil {
		return err
	}
	classes, err := json.Marshal(p.m.Data.ClassNames)
	if err != nil {
		return errors.Wrap(err, "export: onnx")
	}
	input := "bytes, 0 to 255"
	if p.o.Float {
		input = "numbers from 0 to 1"
	}
	resize := "stretch"
	if p.m.Data.Crop {
		resize = "crop"
	}
	p.w.Version = p.m.Revision
	for _, entry := range [][2]string{
		{"classes", string(classes)}, {"input", input}, {"resize", resize + ", bicubic"}, {"run_digest", digest},
		{"samples", strconv.Itoa(len(p.chosen))}, {"samples_of_run", strconv.Itoa(p.draws.Len())},
		{"method", bayes.MethodName(p.m.Spec.Method)}, {"network", p.m.NetworkName()}, {"training_data", p.m.Data.Name},
	} {
		p.w.Metadata(entry[0], entry[1])
	}
	if own != nil && !p.o.Unscaled {
		p.w.Metadata("exponent", fmt.Sprint(own.Exponent))
	}
	if p.hasSets(own) {
		p.w.Metadata("level", fmt.Sprint(p.o.Level))
		p.w.Metadata("sets", p.o.Sets.String())
	}
	if p.detector != nil {
		p.w.Metadata("in_distribution_rate", fmt.Sprint(p.o.Rate))
	}
	for i, remark := range p.remarks {
		p.w.Metadata(fmt.Sprintf("remark%d", i+1), remark)
	}
	return nil
}
