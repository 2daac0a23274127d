package bayes

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/strange"
	"github.com/pollen-ml/pollen/internal/transfer"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Distillation trains one network to predict what the run of Spec.Teacher does: the averaged
// probabilities and how much the samples disagree. The exponentials of its logits are the
// concentrations alpha of a Dirichlet distribution over the probabilities. Their softmax is its
// mean, so that the network predicts like any other, and the mutual information follows from their
// sum, see evaluate.DirichletInformation. A prediction costs one network instead of all samples.
//
// The target for an image is the Dirichlet distribution with the teacher's averaged probabilities p
// and with its mutual information, whose precision is a. With y = logits - ln a, Adam minimizes the
// mean over images of
//
//	ln sum_k exp(y_k) - sum_k p_k y_k  +  PrecisionWeight/2 (ln sum_k exp(y_k))^2,
//
// the cross-entropy with p, and the squared error of the logarithm of the precision. Both are
// smallest where the prediction is the target. The likelihood of the samples' probabilities under
// the Dirichlet distribution, which Malinin, Mlodozeniec and Gales (Ensemble distribution
// distillation, 2020) minimize, is dominated by small probabilities of wrong classes; Ryabinin,
// Malinin and Gales (Scaling ensemble distribution distillation to many classes with proxy targets,
// 2021) therefore fit such a target, too.
//
// The images are those trained on and WithUnlabelled's, changed ones, which are warped and blended
// with each other, and drawn ones, of random shapes. No label is used: the teacher predicts each of
// them.
type Distillation struct {
	plain
	// PrecisionWeight is the weight of the error of the precision, positive.
	PrecisionWeight float64
	// Copies is the number of copies of the images, at least 1, of which all but the first are
	// changed. The teacher predicts each copy once. An epoch uses one of them, in turn.
	Copies int
}

// distillationEpochs is the default number of epochs: a network that follows another one closely
// needs many more than one that learns labels.
const distillationEpochs = 60

// Name implements Method.
func (Distillation) Name() string { return "distil" }

// Validate implements Method.
func (d Distillation) Validate() error {
	if !(d.PrecisionWeight > 0 && d.PrecisionWeight-d.PrecisionWeight == 0) {
		return errors.Errorf("pollen: distil: PrecisionWeight must be positive and finite, got %v", d.PrecisionWeight)
	}
	if d.Copies < 1 {
		return errors.Errorf("pollen: distil: Copies must be at least 1, got %d", d.Copies)
	}
	return nil
}

func (Distillation) traits() kindTraits {
	return kindTraits{rated: true, dirichlet: true, epochs: distillationEpochs}
}

func (Distillation) applies(setting string) bool { return setting == teacherSetting }

// teacherSetting is the name of the setting of Spec.Teacher.
const teacherSetting = "teacher"

func (d Distillation) check(s *Spec) error {
	switch {
	case s.Teacher == "":
		return errors.New("pollen: distil: teacher must be the directory of a run")
	case s.Chains != 1:
		return errors.Errorf("pollen: distil: chains must be 1, got %d: one network is trained", s.Chains)
	case !s.Augment.isNone():
		return errors.New("pollen: distil: augment does not apply: the method changes images itself, and the teacher must predict the same ones")
	case !s.ClassWeights.isNone():
		return errors.New("pollen: distil: class-weights do not apply: labels are not used")
	case s.isPretrained():
		return errors.New("pollen: distil: the network must not be an ONNX file: name another one with model")
	}
	return d.Validate()
}

// The inputs of a distillation, besides images and labels.
const (
	meansInput      = "means"      // [N K], of the target
	precisionsInput = "precisions" // [N 1], logarithms
)

// attach makes the loss of the mean the recorded one, which compares with other methods.
func (d Distillation) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	logits = in.network.Apply(b, in.x)
	n, batch := t.data.Len(), op.Batch{Size: t.spec.Batch, Order: op.Shuffled}
	means := b.Apply(op.GatherRows{Batch: batch}, b.Data(meansInput, tensor.Float32, n, t.data.Classes), b.Header())
	precisions := b.Apply(op.GatherRows{Batch: batch}, b.Data(precisionsInput, tensor.Float32, n, 1), b.Header())
	crossEntropy, squaredError := distillationLosses(b, logits, means, precisions)
	total := b.Apply(op.Add{}, crossEntropy, b.Apply(op.Scale{Factor: d.PrecisionWeight / 2}, squaredError))
	parameters := b.Parameters()
	adam := optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	optimizers.Update(b, adam, parameters, b.Gradients(total, parameters...), b.Table("rates", t.rates))
	t.hooks = append(t.hooks, t.teaching)
	return logits, crossEntropy, b.Err()
}

// distillationLosses returns the mean cross-entropy of a minibatch's logits [B K] with means [B K],
// and the mean squared error of the logarithm of the precision, whose target is precisions [B 1].
// The subtraction of the target keeps the exponentials near 1.
func distillationLosses(b *graph.Builder, logits, means, precisions *graph.Node) (crossEntropy, squaredError *graph.Node) {
	classes := op.AxesOf(1)
	y := b.Apply(op.Subtract{}, logits, precisions)
	excess := b.Apply(op.Log{}, b.Apply(op.Sum{Axes: classes}, b.Apply(op.Exp{}, y)))
	inner := b.Apply(op.Sum{Axes: classes}, b.Apply(op.Multiply{}, means, y))
	crossEntropy = b.Apply(op.Mean{}, b.Apply(op.Subtract{}, excess, inner))
	return crossEntropy, b.Apply(op.Mean{}, b.Apply(op.Squared{}, excess))
}

// conclude removes the teacher's predictions, which only an unfinished run needs.
func (Distillation) conclude(_ context.Context, t *job, _ tensor.Device) error {
	return errors.Wrap(os.RemoveAll(t.teaching.targetsDir()), "pollen: distil")
}

// teaching loads the session of a distillation with images, copy by copy, and with what the teacher
// predicts for them. It is a langevin.Hook, which is due before the first step of each epoch. It is
// nil for other methods, for which open and described do nothing.
type teaching struct {
	environment
	dir    string // of the run; "" for trainings that keep nothing
	spec   Spec
	data   *datasets.Dataset // trained on
	images samples.Images    // shape and moments

	teacher *Run // nil before open
	about   *Teacher
	loaded  bool
}

// open opens the teacher, and refuses one that cannot teach the run. It compares the teacher with
// the one that the run began with, unless before is nil.
func (g *teaching) open(before *Teacher) error {
	if g == nil {
		return nil
	}
	if extra, d := g.unlabelled, g.data; extra != nil && (extra.Channels != d.Channels || extra.Height != d.Height || extra.Width != d.Width) {
		return invalid("distil: %s has images of %dx%dx%d, must have the %dx%dx%d of %s", extra.Name, extra.Channels, extra.Height, extra.Width,
			d.Channels, d.Height, d.Width, d.Name)
	}
	dir := g.spec.Teacher
	teacher, err := Open(dir, WithObserver(g.observe), WithDevice(g.device))
	if errors.As(err, new(*NotARunError)) {
		return InvalidError{errors.WithMessage(err, "teacher")}
	}
	if err == nil {
		_, err = teacher.images(g.data)
	}
	if err != nil {
		return errors.WithMessage(err, "teacher")
	}
	if theirs, ours := teacher.manifest.Data.ClassNames, g.data.ClassNames; !slices.Equal(theirs, ours) {
		return invalid("distil: the classes of %s must be those of %s, %q, got %q", g.data.Name, dir, theirs, ours)
	}
	about, err := g.describe(teacher)
	switch {
	case err != nil:
		return errors.WithMessage(err, "teacher")
	case about.Samples < 2:
		return invalid("distil: %s must have at least 2 samples, got %d: one network has no spread to distil", dir, about.Samples)
	case before == nil || *before == *about:
	case before.Unlabelled != about.Unlabelled:
		return invalid("resume %s: the unlabelled images must be those that the run began with, %d images, got %d",
			g.dir, before.UnlabelledImages, about.UnlabelledImages)
	default:
		return invalid("resume %s: its teacher %s has changed since it began: its digest must be %s, got %s", g.dir, dir, before.Digest, about.Digest)
	}
	teacher.undetected = true
	g.teacher, g.about = teacher, about
	return nil
}

// described returns the description of the teacher and the unlabelled images that open has found.
func (g *teaching) described() *Teacher {
	if g == nil {
		return nil
	}
	return g.about
}

// describe returns the description of the teacher and the unlabelled images.
func (g *teaching) describe(teacher *Run) (*Teacher, error) {
	files, err := teacher.intactFiles("distil")
	if err != nil {
		return nil, err
	}
	m := teacher.manifest
	kind, err := kindOf(m.Spec.Method)
	if err != nil {
		return nil, err
	}
	about := &Teacher{Samples: len(files) * kind.passes(&m.Spec), Method: MethodText(m.Spec.Method), Network: m.Spec.NetworkName()}
	if about.Digest, err = teacher.digestOf(files); err != nil {
		return nil, err
	}
	if g.unlabelled != nil {
		about.Unlabelled, about.UnlabelledImages = contentHash(g.unlabelled), g.unlabelled.Len()
	}
	return about, nil
}

// copyAt returns the number, from 0, of the copy of the images that a step uses.
func (g *teaching) copyAt(step int) int {
	return step * g.spec.Batch / g.data.Len() % g.spec.Method.(Distillation).Copies
}

// Due implements langevin.Hook. A training that keeps nothing only makes a few steps to time them,
// for which any targets do.
func (g *teaching) Due(step int) bool {
	return g.dir != "" && (!g.loaded || g.copyAt(step) != g.copyAt(step-1))
}

// OnStep implements langevin.Hook.
func (g *teaching) OnStep(ctx context.Context, s *graph.Session) error {
	number := g.copyAt(int(s.Steps()))
	images := g.images
	images.Pixels = g.pool().Copy(g.data.Len(), number, g.spec.Seed)
	means, precisions, err := g.targets(ctx, number, images.Pixels)
	if err != nil {
		return err
	}
	// With the teacher's class as the label, the accuracy of a minibatch is the agreement with it.
	labels, classes := make([]int32, g.data.Len()), g.data.Classes
	for i := range labels {
		row := means[i*classes : (i+1)*classes]
		labels[i] = int32(slices.Index(row, slices.Max(row)))
	}
	g.loaded = true
	return cmp.Or(images.Write(s), graph.Write(s, labelsInput, 0, 0, labels),
		s.WriteFloats(meansInput, 0, means), s.WriteFloats(precisionsInput, 0, precisions))
}

// pool returns the images trained on, which the unlabelled ones follow.
func (g *teaching) pool() transfer.Pool {
	d, n := g.data, g.data.Len()
	p := transfer.Pool{Channels: d.Channels, Height: d.Height, Width: d.Width, Len: n, Image: d.Image}
	if extra := g.unlabelled; extra != nil {
		p.Len += extra.Len()
		p.Image = func(i int) []byte {
			if i >= n {
				return extra.Image(i - n)
			}
			return d.Image(i)
		}
	}
	return p
}

// targetsDir returns the directory of the teacher's predictions.
func (g *teaching) targetsDir() string { return filepath.Join(g.dir, rundir.TargetsDir) }

// targets returns the target for a copy of the images: means [N K], and logarithms of precisions
// [N]. They are kept on the disk until the run is finished, since the teacher takes long.
func (g *teaching) targets(ctx context.Context, number int, pixels []byte) (means, precisions []float32, err error) {
	path := filepath.Join(g.targetsDir(), samples.FileName(0, number))
	kept, err := samples.ReadSample(path)
	n, classes := g.data.Len(), g.data.Classes
	switch {
	case err == nil && len(kept.Parameters) == 2 && len(kept.Parameters[0].Values) == n*classes && len(kept.Parameters[1].Values) == n:
		return kept.Parameters[0].Values, kept.Parameters[1].Values, nil
	case !os.IsNotExist(errors.Cause(err)):
		g.remark(fmt.Sprintf("%s is damaged: the teacher predicts these images again", path))
	}
	images := *g.data
	images.Images, images.Labels = pixels, nil
	images.Name = fmt.Sprintf("copy %d of %d of %s", number+1, g.spec.Method.(Distillation).Copies, g.data.Name)
	predictions, err := g.teacher.Predictions(ctx, &images, nil)
	if err != nil {
		return nil, nil, errors.WithMessage(err, "teacher")
	}
	means, precisions = make([]float32, n*classes), make([]float32, n)
	for i, p := range predictions.Probabilities {
		means[i] = float32(p)
	}
	for i, information := range predictions.MutualInformation {
		precisions[i] = float32(math.Log(evaluate.DirichletPrecision(predictions.Probabilities[i*classes:(i+1)*classes], information)))
	}
	if err := file.MakeDir(g.targetsDir()); err != nil {
		return nil, nil, errors.Wrap(err, "pollen: distil")
	}
	return means, precisions, samples.NewStore(g.targetsDir()).Add(samples.Sample{Step: number, Weight: 1, Parameters: []samples.Parameter{
		{Name: meansInput, Shape: tensor.Shape{n, classes}, Values: means}, {Name: precisionsInput, Shape: tensor.Shape{n, 1}, Values: precisions},
	}})
}

// MeasureFidelity compares a distilled run with its teacher on labelled held-out images, and on
// out-of-distribution images: the strange ones with which runs test themselves, and the given ones.
// It writes the result to the run's directory, from which Fidelity reads it. It is an InvalidError
// if the run was not distilled, or its teacher has changed since.
func (r *Run) MeasureFidelity(ctx context.Context, heldOut *datasets.Dataset, others ...*datasets.Dataset) (*evaluate.Fidelity, error) {
	if err := checkContext(ctx, "fidelity"); err != nil {
		return nil, err
	}
	teacher, err := r.teacher()
	if err != nil {
		return nil, err
	}
	own, err := strangeImages(heldOut)
	if err != nil {
		return nil, err
	}
	theirs, err := teacher.Assess(ctx, heldOut, nil)
	if err != nil {
		return nil, errors.WithMessage(err, "teacher")
	}
	ours, err := r.Assess(ctx, heldOut, nil)
	if err != nil {
		return nil, err
	}
	f, err := evaluate.NewFidelity(theirs, ours)
	if err != nil {
		return nil, err
	}
	for _, other := range append([]*datasets.Dataset{own}, others...) {
		p, err := teacher.Predictions(ctx, other, nil)
		if err != nil {
			return nil, errors.WithMessage(err, "teacher")
		}
		q, err := r.Predictions(ctx, other, nil)
		if err != nil {
			return nil, err
		}
		if err := f.AddOut(theirs.In, ours.In, p, q); err != nil {
			return nil, err
		}
	}
	return f, rundir.AddFile(r.dir, rundir.FidelityFile, f, r.remark)
}

// Fidelity returns the result of MeasureFidelity. If that was not called, the error's cause is
// os.ErrNotExist.
func (r *Run) Fidelity() (*evaluate.Fidelity, error) {
	f := &evaluate.Fidelity{}
	if err := rundir.ReadFile(r.dir, rundir.FidelityFile, f); err != nil {
		return nil, err
	}
	return f, nil
}

// teacher opens the run that r was distilled from.
func (r *Run) teacher() (*Run, error) {
	described := r.manifest.Teacher
	if described == nil {
		return nil, invalid("fidelity: %s was not distilled, and has no teacher", r.dir)
	}
	teacher, err := Open(r.manifest.Spec.Teacher)
	if err != nil {
		return nil, errors.WithMessage(err, "teacher")
	}
	digest, err := teacher.Digest()
	if err != nil {
		return nil, errors.WithMessage(err, "teacher")
	}
	if digest != described.Digest {
		return nil, invalid("fidelity: the teacher of %s, %s, has changed since: its digest must be %s, got %s",
			r.dir, teacher.dir, described.Digest, digest)
	}
	teacher.environment = r.environment
	return teacher, nil
}

// strangeImages returns images that cannot belong to the classes of own, some of them made of its
// images.
func strangeImages(own *datasets.Dataset) (*datasets.Dataset, error) {
	kinds, err := strange.Images(own)
	if err != nil {
		return nil, err
	}
	all := *own
	all.Name, all.Images, all.Labels, all.Files, all.IDs, all.Groups = "strange images", nil, nil, nil, nil, nil
	for _, k := range kinds {
		all.Images = append(all.Images, k.Images...)
	}
	return &all, nil
}
