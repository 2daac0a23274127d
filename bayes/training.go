package bayes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// window is the number of steps between two observations of a run. It is below graph.MetricRows,
// the number of steps whose metrics a session keeps. exactWindow is the number for samplers on all
// data, whose traces have one value for each window and whose steps take far longer. Where a step
// is a trajectory, each one is observed.
const (
	window      = 100
	exactWindow = 10
)

// training is a run in progress: the resolved specification, its session on the device, the writer
// of its directory and what was measured of it. The embedded job is the part that a methodKind
// sees. The fields are filled in this order: newTraining (specification, plan), load (session),
// finish (writer), begin (measured), beginRun or recoverRun (manifest).
type training struct {
	environment
	job
	written  Spec // as in the manifest of a new run
	kind     methodKind
	dir      string
	manifest *Manifest
	splits   *datasets.Splits // all data of the run; nil for trainings that keep nothing
	trial    bool             // only estimates memory, see advice

	measured    *measure.Measurements
	watchdog    watchdog
	watching    *samples.Images // held-out images that chains are watched on
	validation  *samples.Images // validation images that chains are scored on, with their labels
	labels      []int32
	evaluations int     // made by the session so far
	reported    int     // images of the present window in events of its parts, see pace
	noiseShare  float64 // mean of the last window, of matched friction

	teaching   *teaching // of a distillation; nil for other methods
	warmUp     *warmUp   // nil without a warm start
	warmStates [][]byte  // of a checkpoint, see warmUp.save

	validated *evaluate.Predictions // predictions for the validation images, which calibrate makes
}

// warmUp is the warm start of a run while it is made. Each chain is optimized on most of the
// training images. After each epoch it is scored on the others, and its best parameters are kept.
// It stops when no chain has improved for Spec.WarmPatience epochs. A chain's result depends on no
// other chain, so that the parts of a run have the same chains as the whole.
//
// The images held out are training images, which the chains sample with later. Validation images
// are not used: the guarantees that are calibrated on them would not hold if they had also been
// used to choose the weights.
type warmUp struct {
	training  *training // of the optimizer; its session is nil between two parts of a run
	predictor *samples.SamplePredictor
	heldOut   *datasets.Dataset
	patience  int
	enough    int // a chain stops if its lowest loss came after this many steps or more; 0 is no limit
	epochs    int // made and scored
	done      bool
	chains    []warmChain

	chainBytes int // size of a chain's state of the optimizer, once the run's session is loaded

	predicted func(chain int, probabilities []float32) // called with a chain's predictions for the images held out; may be nil
}

// warmChain has the best parameters of a chain so far, in the order of the program's parameters,
// with their epoch and scores.
type warmChain struct {
	epoch          int
	halvings       int // of its learning rate
	loss, accuracy float64
	best           [][]float32
	losses         []float64 // of all epochs so far, the initial values first
}

// watchdog remembers what was remarked about a run, so that each remark is made once.
type watchdog struct {
	bad     []int  // consecutive windows with a loss no better than guessing's, by chain
	named   []bool // the chains that a remark named
	windows int    // in the sampling phase
	warned  bool   // about the temperature
}

// newTraining resolves a specification for data, and finds the mistakes that can be found without a
// device. dir is "" for trainings that keep nothing, such as a pilot.
func newTraining(spec Spec, data *datasets.Dataset, dir string, e environment) (t *training, err error) {
	t = &training{environment: e, dir: dir, job: job{data: data, note: e.remark}}
	if t.spec, err = spec.resolve(data.Len()); err != nil {
		return nil, err
	}
	if t.kind, err = kindOf(t.spec.Method); err != nil {
		return nil, err
	}
	if err := checkLabelled(data); err != nil {
		return nil, err
	}
	if data.Classes < 2 {
		return nil, invalid("data: %q must have at least 2 classes, got %d: %q", data.Name, data.Classes, data.ClassNames)
	}
	if t.spec.Subset > data.Len() {
		return nil, invalid("subset must be at most %d, the number of examples of %s, got %d", data.Len(), data.Name, t.spec.Subset)
	}
	if t.spec.Subset > 0 {
		if t.data, err = data.First(t.spec.Subset); err != nil {
			return nil, err
		}
	}
	// After Subset: a batch of such a sampler is all examples trained on.
	if t.kind.traits().exact && t.spec.Batch == 0 {
		t.spec.Batch = t.data.Len()
	}
	if err := t.spec.Augment.checkFits(t.data); err != nil {
		return nil, err
	}
	if err := t.prepareNetwork(); err != nil {
		return nil, err
	}
	if _, ok := t.kind.(Distillation); ok {
		t.teaching = &teaching{environment: e, dir: dir, spec: t.spec, data: t.data, images: t.inputs}
		t.lessons = t.teaching
	}
	if t.classWeights, err = t.spec.ClassWeights.of(t.data); err != nil {
		return nil, err
	}
	if t.plan, t.rates, err = t.spec.plan(t.kind, t.data.Len()); err != nil {
		return nil, err
	}
	if err := layers.Check(t.parts.network, t.inputs.Shape(), t.data.Classes); err != nil {
		return nil, &InvalidError{err} // it does not map the images to one logit for each class
	}
	t.warmUp, err = t.newWarmUp()
	traits := t.kind.traits()
	explores := t.warmUp != nil && t.spec.Cycles > 0 && t.spec.Anchor == 0 && len(t.spec.Temperatures) == 0
	t.halves = explores || traits.rated && !traits.tempered
	return t, err
}

// prepareNetwork makes the network. Images for the network of an ONNX file are normalised by the
// file's mean and standard deviation, instead of the data's.
func (t *training) prepareNetwork() (err error) {
	if t.spec, err = t.spec.withModel(); err != nil {
		return err
	}
	t.mean, t.std = t.data.Mean, t.data.Std
	if t.spec.isPretrained() {
		input, err := pretrained.ParseInput(t.spec.Input)
		if err != nil {
			return &InvalidError{err}
		}
		data := *t.data
		if data.Mean, data.Std, err = input.Moments(data.Channels); err != nil {
			return &InvalidError{err}
		}
		t.data = &data
	}
	d := t.data
	images := imagesLike(d, nil)
	if t.parts, err = t.spec.parts(images, d.Classes); err != nil {
		return err
	}
	t.inputs, t.unchanged = t.parts.inputs(), t.parts.inputs()
	if t.headNames, err = t.spec.headParameters(images, d.Classes); err != nil {
		return err
	}
	t.fanIns, err = t.spec.fanIns()
	return err
}

// newWarmUp divides the data and returns the warm start; nil if the specification has none.
func (t *training) newWarmUp() (*warmUp, error) {
	if t.spec.WarmStart == nil {
		return nil, nil
	}
	used, heldOut, err := t.spec.divided(t.data)
	if err != nil {
		return nil, err
	}
	used.Mean, used.Std = t.mean, t.std
	u, err := newTraining(t.spec.warmSpec(used.Len()), used, "", t.environment)
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: warm start")
	}
	u.halves = optimizers.UsesRates(t.spec.WarmStart)
	return &warmUp{training: u, heldOut: heldOut, patience: t.spec.WarmPatience, chains: make([]warmChain, t.spec.Chains)}, nil
}

// loadInputs sets the values of the network's inputs: the pixels of the training images, or their
// features.
func (t *training) loadInputs(ctx context.Context, device tensor.Device) (err error) {
	if t.unchanged, err = t.features(ctx, device, t.data.Images); err != nil {
		return err
	}
	t.inputs = t.unchanged
	if c := t.copier(); c != nil {
		t.inputs, err = c.features(ctx, t.environment, device, t.parts.frozen)
	}
	return err
}

// features returns the inputs of the network for the pixels of images.
func (t *training) features(ctx context.Context, device tensor.Device, pixels []byte) (samples.Images, error) {
	return t.read(ctx, device, t.parts, t.data.Name, pixels)
}

// remarkSteps reports what the run is going to do.
func (t *training) remarkSteps() {
	s, parts := t.spec, []string{}
	if _, attributes, any := strings.Cut(MethodText(s.Method), ":"); any {
		parts = append(parts, attributes)
	}
	if s.Schedule != nil {
		parts = append(parts, "learning rate "+s.Schedule.String())
	}
	if !t.kind.traits().exact {
		epochs := "epochs"
		if s.Epochs == 1 {
			epochs = "epoch"
		}
		parts = append(parts, fmt.Sprintf("minibatches of %d, %d %s", s.Batch, s.Epochs, epochs))
	}
	if !s.Augment.isNone() {
		what := "images"
		if s.Augment.Copies > 0 {
			what = fmt.Sprintf("%d copies of each image", s.Augment.Copies)
		}
		parts = append(parts, fmt.Sprintf("%s changed at random (%v)", what, s.Augment))
	}
	t.remark(strings.Join(append(parts, fmt.Sprintf("%d steps", t.plan.Steps)), ", "))
	if hmc, ok := s.Method.(mcmc.HMC); ok && t.plan.Thinning < hmc.LeapfrogSteps {
		t.remark(fmt.Sprintf("samples repeat: there is one every %d steps, but only every %d steps does a chain move; "+
			"use fewer samples or more epochs", t.plan.Thinning, hmc.LeapfrogSteps))
	}
	t.remarkClassWeights()
}

// remarkClassWeights reports the weights, the largest and the smallest if there are many.
func (t *training) remarkClassWeights() {
	if t.classWeights == nil {
		return
	}
	const most = 12
	var list []string
	for class, weight := range t.classWeights {
		list = append(list, fmt.Sprintf("%s %.3g", t.data.ClassNames[class], weight))
	}
	text := strings.Join(list, ", ")
	if len(list) > most {
		text = fmt.Sprintf("%.3g to %.3g", slices.Min(t.classWeights), slices.Max(t.classWeights))
	}
	t.remark(fmt.Sprintf("class weights: %s; probabilities are for a mixture of classes weighted so", text))
}

// augment changes a minibatch's images. Those for the network of an ONNX file are normalised for
// it, but change in units of the training images.
func (t *training) augment(b *graph.Builder, x *graph.Node) *graph.Node {
	switch a := t.spec.Augment; {
	case !a.atEachStep():
		return x
	case !t.spec.isPretrained():
		return a.apply(b, x)
	}
	x = t.spec.Augment.apply(b, renormalised(b, "augment", x, t.data.Mean, t.data.Std, t.mean, t.std))
	return renormalised(b, "augmented", x, t.mean, t.std, t.data.Mean, t.data.Std)
}

// rowBatch returns the number of rows of a step. Samplers on all data read all copies of an image.
func (t *training) rowBatch() int {
	if t.kind.traits().exact {
		return t.spec.Batch * t.spec.Augment.copies()
	}
	return t.spec.Batch
}

// graph returns the graph of a step. The network is built within Float32 even if the graph is
// Float64, see dtype.
func (t *training) graph() (*graph.Builder, error) {
	b := graph.New(t.dtype())
	end := b.Within(tensor.Float32)
	traits := t.kind.traits()
	batch := op.Batch{Size: t.rowBatch(), Order: op.Shuffled}
	switch {
	case traits.exact:
		batch.Order = op.Sequential
	case traits.independent:
		batch.Order = op.Independent
	case t.spec.Symmetric:
		batch.Order = op.Symmetric
	}
	x := t.inputs.Input(b, batch, t.rows())
	labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data(labelsInput, tensor.Int32, t.rows()), b.Header())
	in := inputs{network: t.parts.network, x: t.augment(b, x), labels: labels, posterior: t.posterior()}
	if t.classWeights != nil {
		in.weights = measure.GatherWeights(b, batch, t.rows())
	}
	end()
	logits, loss, err := t.kind.attach(&t.job, b, in)
	if err != nil {
		return nil, &InvalidError{err} // for example a prior of a layer that the network does not have
	}
	// Samplers on all data record these as quantities of their draws instead, see lossMetric.
	if t.walk == nil {
		b.Record(lossMetric, loss)
		b.Record(accuracyMetric, b.Apply(op.Accuracy{}, logits, labels))
		if watched := t.watched(b); watched != nil {
			b.Record(watchedMetric, watched)
		}
	}
	return b, nil
}

// dtype returns the type of a program's parameters and updates. Energies that a Metropolis test
// compares need float64. Networks compute in float32 even then, see fullBatchKind.
func (t *training) dtype() tensor.DType {
	if t.kind.traits().exact {
		return tensor.Float64
	}
	return tensor.Float32
}

// spacing returns the number of steps between two observations.
func (t *training) spacing() int {
	switch traits := t.kind.traits(); {
	case traits.paths:
		return 1
	case traits.exact:
		return exactWindow
	}
	return window
}

// passes returns the number of passes over the data that all chains together make in the given
// number of steps.
func (t *training) passes(steps int) float64 {
	return float64(steps) * float64(t.spec.Batch*t.spec.Chains) / float64(t.data.Len())
}

// images returns the number of images that all chains processed in the steps of a window and in
// evaluations between them, except those that were reported before its end. Observers compute
// throughput from it.
func (t *training) images(p langevin.Window) int {
	evaluations := int(t.session.Evaluations()) - t.evaluations
	t.evaluations += evaluations
	return (p.To-p.From+evaluations)*t.spec.Batch*t.session.Chains() - t.reported
}
