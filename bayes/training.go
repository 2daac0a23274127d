package bayes

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
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
	trial    bool             // only to find out what it would take

	measured    *measure.Measurements
	watchdog    watchdog
	watching    *samples.Images // held-out images that chains are watched on
	validation  *samples.Images // validation images that chains are scored on, with their labels
	labels      []int32
	evaluations int     // made by the session so far
	noiseShare  float64 // mean of the last window, of matched friction

	teaching   *teaching // of a distillation; nil for other methods
	warmUp     *warmUp   // nil without a warm start
	warmStates [][]byte  // of a checkpoint, see warmUp.save

	validated *evaluate.Predictions // for the validation images, by the calibration
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
		return nil, invalid("%s must have at least 2 classes, got %d", data.Name, data.Classes)
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
		t.targets, t.targetsDir = t.teaching, t.teaching.targetsDir()
	}
	if t.classWeights, err = t.spec.ClassWeights.of(t.data); err != nil {
		return nil, err
	}
	if t.plan, t.rates, err = t.spec.plan(t.kind, t.data.Len()); err != nil {
		return nil, err
	}
	t.warmUp, err = t.newWarmUp()
	t.halves = t.warmUp != nil && t.spec.Cycles > 0 && t.spec.Anchor == 0 && len(t.spec.Temperatures) == 0
	return t, err
}

// prepareNetwork makes the network. That of an ONNX file has its own moments of pixels, instead of
// the data's. With augmentation, features cannot be computed once: the whole network is then
// applied at each step.
func (t *training) prepareNetwork() (err error) {
	if t.spec, err = t.spec.withModel(); err != nil {
		return err
	}
	if t.spec.isPretrained() {
		format, err := parseInput(t.spec.Input)
		if err != nil {
			return err
		}
		data := *t.data
		data.Mean, data.Std = format.moments(data.Channels)
		t.data = &data
	}
	d := t.data
	images := samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std}
	if t.predicted, err = t.spec.parts(images, d.Classes); err != nil {
		return err
	}
	t.trained, t.inputs = t.predicted.network, t.predicted.inputs()
	if t.headNames, err = t.spec.headParameters(images, d.Classes); err != nil {
		return err
	}
	if t.predicted.stem != nil && !t.spec.Augment.isNone() {
		t.inputs = images
		t.trained, err = t.spec.Build(d.Classes)
	}
	return err
}

// loadInputs fills in the training images as the network reads them.
func (t *training) loadInputs(ctx context.Context, device tensor.Device) (err error) {
	if t.inputs.Features == 0 {
		t.inputs.Pixels = t.data.Images
		return nil
	}
	t.inputs, err = t.features(ctx, device, t.data.Images)
	return err
}

// features returns images as the network predicts them.
func (t *training) features(ctx context.Context, device tensor.Device, pixels []byte) (samples.Images, error) {
	e := t.predicted.extractor(device)
	defer e.close()
	e.keepIn(t.environment)
	e.observe = func(done, total int) {
		t.observe(Event{Task: "features", On: t.data.Name, Done: done, Total: total, Images: (done-1)%featureBatch + 1})
	}
	return e.of(ctx, pixels)
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
		parts = append(parts, fmt.Sprintf("minibatches of %d, %d epochs", s.Batch, s.Epochs))
	}
	if !s.Augment.isNone() {
		parts = append(parts, fmt.Sprintf("images changed at random (%v)", s.Augment))
	}
	t.remark(strings.Join(append(parts, fmt.Sprintf("%d steps", t.plan.Steps)), ", "))
	t.remarkClassWeights()
}

// load builds the program, checks that there is memory for the run, and writes the data into its
// session. All images go to the device once, as bytes; op.Minibatch gathers and normalises a
// minibatch there at each step, so that a step needs nothing of the host.
func (t *training) load(ctx context.Context, device tensor.Device) error {
	program, err := t.fitting(device)
	if err != nil {
		return err
	}
	if err := t.loadInputs(ctx, device); err != nil {
		return err
	}
	t.session, err = program.Load(device, graph.LoadOptions{
		Seed: t.spec.Seed, FirstChain: t.spec.FirstChain * t.spec.replicasOfEach(), Chains: t.spec.Chains * t.spec.replicasOfEach(),
	})
	if err != nil {
		return err
	}
	if err := give(t.session, t.inputs, t.data.Labels); err != nil || t.classWeights == nil {
		return err
	}
	if err := measure.WriteWeights(t.session, t.data.Labels, t.classWeights); err != nil {
		t.session.Close()
		return err
	}
	return nil
}

// build compiles the program, for a device that must have memory for the weights at least. The
// network is built within Float32 even if the graph is Float64, see dtype.
func (t *training) build(device tensor.Device) (*graph.Program, error) {
	if err := checkNetwork(t.trained, t.inputs, t.data.Classes); err != nil {
		return nil, err
	}
	b := graph.New(t.dtype())
	end := b.Within(tensor.Float32)
	traits := t.kind.traits()
	batch := op.Batch{Size: t.spec.Batch, Order: op.Shuffled}
	switch {
	case traits.exact:
		batch.Order = op.Sequential
	case traits.independent:
		batch.Order = op.Independent
	case t.spec.Symmetric:
		batch.Order = op.Symmetric
	}
	x := t.inputs.Input(b, batch, t.data.Len())
	labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data(labelsInput, tensor.Int32, t.data.Len()), b.Header())
	in := inputs{network: t.trained, x: t.spec.Augment.apply(b, x), labels: labels, posterior: t.posterior()}
	if t.classWeights != nil {
		in.weights = measure.GatherWeights(b, batch, t.data.Len())
	}
	end()
	logits, loss, err := t.kind.attach(&t.job, b, in)
	if err != nil {
		return nil, InvalidError{err} // such as a prior of a layer that the network does not have
	}
	// Samplers on all data record these as quantities of their draws instead, see lossMetric.
	if t.walk == nil {
		b.Record(lossMetric, loss)
		b.Record(accuracyMetric, b.Apply(op.Accuracy{}, logits, labels))
		if watched := t.watched(b); watched != nil {
			b.Record(watchedMetric, watched)
		}
	}
	if err := t.checkWeights(device, b); err != nil {
		return nil, err
	}
	return b.Compile()
}

// dtype returns the type of a program's parameters and updates. Energies that a Metropolis test
// compares need float64. Networks compute in float32 even then, see fullBatchKind.
func (t *training) dtype() tensor.DType {
	if t.kind.traits().exact {
		return tensor.Float64
	}
	return tensor.Float32
}

// begin prepares to observe, and then prepares the run's directory with open, which may restore
// what was observed before.
func (t *training) begin(ctx context.Context, device tensor.Device, open func(device tensor.Device) error) error {
	t.observing()
	if err := t.newProbe(device); err != nil {
		return err
	}
	if t.watching != nil {
		inputs, err := t.features(ctx, device, t.watching.Pixels)
		if err != nil {
			return err
		}
		spacing := min(t.spacing(), max(1, t.plan.Thinning)) // so that few samples have an R-hat, too
		if t.measured.HeldOut, err = measure.NewHeldOut(device, inputs, t.predicted.network, t.spec.Chains, spacing); err != nil {
			return err
		}
	}
	if err := t.newValidation(ctx, device); err != nil {
		return err
	}
	return open(device)
}

// observing prepares to observe. The metrics of minibatches are of U/N, and are scaled by N.
func (t *training) observing() {
	scale := t.data.Len()
	if t.kind.traits().exact {
		scale = 1 // its metrics are of U, not of U/N
	}
	t.measured = measure.New(t.session.Program(), t.spec.Chains, scale)
}

// checkpoint returns the state of all chains, and what was measured of them. Both belong to the
// same step: measurements after a resume are those of an uninterrupted run, too. It copies, so that
// the session can continue while the checkpoint is written.
func (t *training) checkpoint() (rundir.Checkpoint, error) {
	s := t.session
	c := rundir.Checkpoint{Steps: int(s.Steps()), HeldOut: t.measured.HeldOut.Images()}
	t.measured.State(func(name string, values []float64) {
		c.Measured = append(c.Measured, rundir.Measurement{Name: name, Values: values})
	})
	if t.warmUp != nil {
		c.Measured = append(c.Measured, rundir.Measurement{Name: warmName, Values: t.warmUp.numbers()})
		var err error
		if c.Warm, err = t.warmUp.save(t.explores(c.Steps)); err != nil {
			return c, err
		}
	}
	for chain := range s.Chains() {
		state := make([]byte, s.ChainBytes())
		if err := s.Save(chain, state); err != nil {
			return c, err
		}
		c.Chains = append(c.Chains, state)
	}
	return c, nil
}

// restore puts the session and the measurements back to a checkpoint. The size of a chain's state
// must be the program's: another network or method is an error of Session.Restore.
func (t *training) restore(c rundir.Checkpoint) error {
	s := t.session
	if len(c.Chains) != s.Chains() {
		return errors.Errorf("it has %d chains, the run %d", len(c.Chains), s.Chains())
	}
	for chain, state := range c.Chains {
		if err := s.Restore(chain, state, uint64(c.Steps)); err != nil {
			return err
		}
	}
	numbers := map[string][]float64{}
	for _, m := range c.Measured {
		numbers[m.Name] = m.Values
	}
	if t.warmUp != nil {
		if err := t.warmUp.setNumbers(numbers[warmName]); err != nil {
			return err
		}
		t.warmStates = c.Warm
	}
	other, err := t.measured.Restore(numbers, c.HeldOut)
	if other {
		t.remark("the held-out images are not those that chains were watched on before: predictions are watched on these from here on")
	}
	return err
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

// tryTask is the task of the events of try.
const tryTask = "try"

// try makes some steps, and reports an event after each window.
func (t *training) try(ctx context.Context, steps, window int) error {
	plan := langevin.Plan{Steps: steps, Thinning: steps}
	return plan.Run(ctx, t.session, window, func(p langevin.Window) error {
		t.observe(Event{Task: tryTask, On: t.data.Name, Done: p.To, Total: steps, Images: t.images(p)})
		return nil
	}, t.hooks...)
}

// checkNetwork refuses a network that does not map the images to one logit for each class.
func checkNetwork(network layers.Sequential, images samples.Images, classes int) error {
	if err := layers.Check(network, images.Shape(), classes); err != nil {
		return InvalidError{err}
	}
	return nil
}

// A run is scored on at most maxValidation validation images, and on as many as validationShare
// minibatches have, so that scores take a few percent of the time of the steps between them. The
// average that they are scored by has at most maxValidationValues probabilities.
const (
	maxValidation       = 500
	validationShare     = 15
	maxValidationValues = 100_000
)

// chooseValidation chooses the validation images that the chains are scored on while they train,
// evenly spaced ones. There are none if the data have none, and for methods whose samples are drawn
// at the end, such as bbb, whose states are no networks.
func (t *training) chooseValidation(data *datasets.Splits) error {
	d := data.Validation
	if d == nil || d.Len() == 0 || t.kind.traits().drawn {
		return nil
	}
	own := Run{dir: t.dir, manifest: &Manifest{Data: Data{
		Name: t.data.Name, Channels: t.data.Channels, Height: t.data.Height, Width: t.data.Width, ClassNames: t.data.ClassNames,
	}}}
	labels, err := own.relabelled(d)
	if err != nil {
		return err
	}
	n := min(d.Len(), maxValidation, max(1, validationShare*t.spec.Batch), max(1, maxValidationValues/t.data.Classes))
	t.validation = &samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: t.data.Mean, Std: t.data.Std}
	for i := range n {
		at := i * d.Len() / n
		t.validation.Pixels = append(t.validation.Pixels, d.Image(at)...)
		t.labels = append(t.labels, labels.Labels[at])
	}
	return nil
}

// newValidation loads the validation images.
func (t *training) newValidation(ctx context.Context, device tensor.Device) error {
	if t.validation == nil {
		return nil
	}
	images, err := t.features(ctx, device, t.validation.Pixels)
	if err != nil {
		return err
	}
	t.measured.Validation, err = measure.NewValidation(device, images, t.labels, t.predicted.network, standardBatch, max(t.spacing(), exactWindow))
	return err
}

// score scores the states of the chains for a line of the metrics and an event. kept is whether
// they are samples.
func (t *training) score(line *rundir.Metrics, event *Event, states []samples.Sample, kept bool) error {
	s, err := t.measured.Validation.Score(states, line.Step, kept && !t.kind.traits().collected)
	if isNotFinite(err) {
		return nil // a state that is not kept may be of a chain that is still wild
	}
	if err != nil {
		return err
	}
	event.ValidationLoss, event.ValidationAccuracy, event.ValidationNLL = s.Loss, s.Accuracy, s.NLL
	line.ValidationLoss, line.ValidationAccuracy, line.ValidationNLL = &s.Loss, &s.Accuracy, &s.NLL
	return nil
}

// validationLen returns the number of validation images that chains are scored on.
func (t *training) validationLen() int { return len(t.labels) }

// addValidation adds the memory of the scores.
func (t *training) addValidation(m *Memory, device tensor.Device) error {
	n := t.validationLen()
	if n == 0 {
		return nil
	}
	scored, err := samples.PredictionSize(device, t.predicted.inputs(), n, standardBatch, t.predicted.network.Apply)
	if err != nil {
		return err
	}
	m.add("validation images", "", scored.Footprint, len(t.validation.Pixels)+measure.ValidationBytes*n*scored.Classes)
	return nil
}

// ValidationTrace are scores on validation images while a run trained, by the number of steps made.
type ValidationTrace struct {
	Steps               []int
	Loss, Accuracy, NLL []float64 // see Event
}

// ValidationTrace returns the scores on validation images of a run's steps so far; it is empty
// without validation images, and of a gathered run.
func (r *Run) ValidationTrace() (v ValidationTrace, err error) {
	lines, err := rundir.ReadMetrics(r.dir)
	if os.IsNotExist(errors.Cause(err)) {
		return v, nil
	}
	for _, line := range lines {
		if line.ValidationLoss != nil && line.ValidationAccuracy != nil && line.ValidationNLL != nil {
			v.Steps, v.Loss = append(v.Steps, line.Step), append(v.Loss, *line.ValidationLoss)
			v.Accuracy, v.NLL = append(v.Accuracy, *line.ValidationAccuracy), append(v.NLL, *line.ValidationNLL)
		}
	}
	return v, err
}
