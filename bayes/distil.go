package bayes

import (
	"context"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Distillation trains one network to predict what the run of Spec.Teacher does: the averaged
// probabilities and how much the samples disagree. The exponentials of its logits are the
// concentrations alpha of a Dirichlet distribution over the probabilities. The softmax of the
// logits is its mean, so the network predicts like any other. The mutual information follows from
// the sum of the concentrations, see evaluate.DirichletInformation. A prediction costs one network
// instead of all samples. With several Networks, each is a chain that learns from a part of the
// teacher's samples, and is a sample of the run. Predictions average these samples like the
// teacher's, which keeps the disagreement between the parts.
//
// The target for an image is the Dirichlet distribution with the average p of the probabilities
// that the samples predict, and with their mutual information, whose precision is a. With
// y = logits - ln a, Adam minimizes the mean over images of
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
// The network learns from the training images and the images of WithUnlabelled, from copies of both
// that are warped and blended with each other, and from drawings of random shapes. No label is
// used: the teacher predicts each image.
type Distillation struct {
	plain
	// PrecisionWeight is the weight of the error of the precision, positive.
	PrecisionWeight float64
	// Copies is the number of copies of the images, at least 1. All but the first are changed. The
	// teacher predicts each copy once. Each epoch uses the next copy, in turn.
	Copies int
	// Networks, if above 0, is the number of networks like the teacher's, at most its chains times
	// their cycles. The cycles are divided among the networks. Each network starts at the mean of
	// the samples of one of its cycles. At 0, one network learns from all samples, Spec.Network,
	// and starts at random values.
	Networks int
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
	if d.Networks < 0 {
		return errors.Errorf("pollen: distil: Networks must be at least 0, got %d", d.Networks)
	}
	return nil
}

// chains returns the number of networks that are trained.
func (d Distillation) chains() int { return max(1, d.Networks) }

func (Distillation) traits() kindTraits {
	return kindTraits{rated: true, dirichlet: true, epochs: distillationEpochs, settings: []string{teacherSetting}}
}

// teacherSetting is the name of the setting of Spec.Teacher.
const teacherSetting = "teacher"

func (d Distillation) check(s *Spec) error {
	switch {
	case s.Teacher == "":
		return errors.New("pollen: distil: teacher must be the directory of a run")
	case s.Chains != d.chains():
		return errors.Errorf("pollen: distil: chains must be %d, one for each network, got %d", d.chains(), s.Chains)
	case !s.Augment.isNone():
		return errors.New("pollen: distil: augment does not apply: the method changes images itself, and the teacher must predict the same ones")
	case !s.ClassWeights.isNone():
		return errors.New("pollen: distil: class-weights do not apply: labels are not used")
	case d.Networks > 0 && s.Start != "":
		return errors.New("pollen: distil: start does not apply with networks, which start at the teacher's samples")
	case s.isPretrained():
		return errors.New("pollen: distil: the network must not be an ONNX file: name another one with model")
	}
	return d.Validate()
}

// The inputs of a distillation in addition to images and labels, for N images, M networks and K
// classes, and the state of a chain that selects its network's.
const (
	meansInput      = "means"      // [N MK], of the targets
	precisionsInput = "precisions" // [N M], logarithms
	networkState    = "network"    // [M], 1 for the chain's network and 0 for others
)

// attach records the cross-entropy with the teacher's mean as the loss, which can be compared with
// other methods' losses.
func (d Distillation) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	logits = in.network.Apply(b, in.x)
	n, batch := t.data.Len(), op.Batch{Size: t.spec.Batch, Order: op.Shuffled}
	networks, k := d.chains(), t.data.Classes
	means := b.Apply(op.GatherRows{Batch: batch}, b.Data(meansInput, tensor.Float32, n, networks*k), b.Header())
	precisions := b.Apply(op.GatherRows{Batch: batch}, b.Data(precisionsInput, tensor.Float32, n, networks), b.Header())
	if networks > 1 {
		means, precisions = t.ownTargets(b, means, precisions)
	}
	crossEntropy, squaredError := distillationLosses(b, logits, means, precisions)
	total := b.Apply(op.Add{}, crossEntropy, b.Apply(op.Scale{Factor: d.PrecisionWeight / 2}, squaredError))
	t.minimize(b, customaryAdam, total)
	t.hooks = append(t.hooks, t.lessons)
	return logits, crossEntropy, b.Err()
}

// ownTargets selects the targets of a chain's network, means [B K] and precisions [B 1], from the
// targets of all M networks, [B MK] and [B M].
func (t *job) ownTargets(b *graph.Builder, means, precisions *graph.Node) (ownMeans, ownPrecisions *graph.Node) {
	networks, k, first := t.spec.Chains, t.data.Classes, uint32(t.spec.FirstChain)
	own := b.State(networkState, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
		clear(values)
		values[chain-first] = 1
	}, networks)
	selected := func(targets *graph.Node, width int) *graph.Node {
		targets = b.Apply(op.ViewAs(t.spec.Batch, networks, width), targets)
		sum := b.Apply(op.Sum{Axes: op.AxesOf(1)}, b.Apply(op.Multiply{}, targets, b.Apply(op.ViewAs(networks, 1), own)))
		return b.Apply(op.ViewAs(t.spec.Batch, width), sum)
	}
	return selected(means, k), selected(precisions, 1)
}

// distillationLosses returns the mean cross-entropy of a minibatch's logits [B K] with means [B K],
// and the mean squared error of the logarithm of the precision, whose target is precisions [B 1].
// The subtraction of the target keeps the exponentials near 1 once the network has learned. Before
// that, its logits may be far from the target: the largest logit is then brought within
// maxExponent.
func distillationLosses(b *graph.Builder, logits, means, precisions *graph.Node) (crossEntropy, squaredError *graph.Node) {
	classes := op.AxesOf(1)
	y := b.Apply(op.Subtract{}, logits, precisions)
	largest := b.Apply(array.RowMaximum{}, y)
	shift := b.Apply(op.Subtract{}, largest, b.Apply(op.Clip{Low: -maxExponent, High: maxExponent}, largest))
	column := b.Apply(op.ViewAs(graph.ShapeOf(precisions)...), shift)
	sum := b.Apply(op.Sum{Axes: classes}, b.Apply(op.Exp{}, b.Apply(op.Subtract{}, y, column)))
	excess := b.Apply(op.Add{}, b.Apply(op.Log{}, sum), shift)
	inner := b.Apply(op.Sum{Axes: classes}, b.Apply(op.Multiply{}, means, y))
	crossEntropy = b.Apply(op.Mean{}, b.Apply(op.Subtract{}, excess, inner))
	return crossEntropy, b.Apply(op.Mean{}, b.Apply(op.Squared{}, excess))
}

// maxExponent leaves a float32 room for a sum of 2^30 exponentials.
const maxExponent = 64

// states returns the state of each chain with the weight of the samples that its network learns
// from.
func (Distillation) states(t *job, _ int) ([]samples.Sample, error) {
	weights, err := t.lessons.weights()
	if err != nil {
		return nil, err
	}
	return t.takeEach(func(chain int) (samples.Sample, error) { return samples.FromSession(t.session, chain, weights[chain]) })
}

// conclude removes the teacher's predictions, which only an unfinished run needs.
func (Distillation) conclude(_ context.Context, t *job, _ tensor.Device) error {
	return errors.Wrap(os.RemoveAll(t.lessons.targetsDir()), "pollen: distil")
}
