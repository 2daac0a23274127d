package bayes

import (
	"context"
	"maps"
	"slices"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// methodKind defines how methods of one kind take part in a run: how they are attached to a graph,
// which states they keep, and how they finish. All differences between methods are behind it: Fit,
// plan and predictions use the kind and not the method. kindOf returns an optimizerKind, a
// minibatchKind, a fullBatchKind, an autoKind, or an approximation, which is its own kind.
type methodKind interface {
	// traits returns the properties that determine defaults and measurements.
	traits() kindTraits
	// check refuses invalid values of a specification whose defaults are filled in.
	check(s *Spec) error
	// network returns the network to train and predict with.
	network(n layers.Sequential) (layers.Sequential, error)
	// kept returns how many evenly spaced states of each chain are kept after burn-in.
	kept(s *Spec) int
	// passes returns how many predictions are made with each sample.
	passes(s *Spec) int
	// attach adds the network, its loss, which is the mean negative log-likelihood of a minibatch,
	// and the updates.
	attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error)
	// states returns the states of the chains after step steps, in the order of their numbers.
	states(t *job, step int) ([]samples.Sample, error)
	// conclude draws the samples that are drawn after the last step. A run that is killed meanwhile
	// resumes after its last step and draws all of them again, identically.
	conclude(ctx context.Context, t *job, device tensor.Device) error
}

// kindTraits are the properties of a kind of method. For example, SGLD is rated and tempered, HMC
// is tempered and exact, SWAG is rated and collected, and Laplace is rated and drawn.
type kindTraits struct {
	rated       bool // has a learning rate, from Spec.Schedule
	tempered    bool // samples at a temperature, so that temperatures and R-hat are measured
	independent bool // draws its minibatches independently at each step, not in epochs
	exact       bool // uses energies of all data at each step; needs float64 parameters
	paths       bool // a step is a whole trajectory
	epochs      int  // default number of epochs; 0 is 8
	collected   bool // the states that are kept are not samples: conclude draws these from them
	drawn       bool // no states are kept: conclude draws the samples
	dirichlet   bool // the exponentials of the logits are the concentrations of a Dirichlet distribution

	settings []string // the settings that apply, of those that only some methods have
}

// applies reports whether a setting that only some methods have applies.
func (t kindTraits) applies(setting string) bool { return slices.Contains(t.settings, setting) }

// inputs are the inputs of a network's training in a graph. x is a minibatch [B C H W] of
// normalised and augmented pixels, and labels [B] its classes.
type inputs struct {
	network   layers.Sequential
	x, labels *graph.Node
	weights   *graph.Node // of the labels, [B]; nil without class weights
	posterior langevin.Posterior
}

// loss applies the network, and returns its logits [B K] and the mean cross-entropy of the
// minibatch, weighted by class if the classes have weights. Gradients of the posterior's potential
// are made from this loss and the prior, see langevin.Posterior.
func (in inputs) loss(b *graph.Builder) (logits, loss *graph.Node) {
	logits = in.network.Apply(b, in.x)
	return logits, measure.Loss(b, logits, in.labels, in.weights)
}

// plain is embedded by kinds, and does what most of them do: no extra layers, Spec.Samples evenly
// spaced states, one prediction with each, and nothing to conclude.
type plain struct{}

func (plain) network(n layers.Sequential) (layers.Sequential, error) { return n, nil }
func (plain) kept(s *Spec) int                                       { return s.Samples }
func (plain) passes(*Spec) int                                       { return 1 }

// Validate implements Method for methods without attributes.
func (plain) Validate() error { return nil }

func (plain) conclude(context.Context, *job, tensor.Device) error { return nil }

// states returns the state of each chain of the session with weight 1.
func (plain) states(t *job, _ int) ([]samples.Sample, error) { return t.takeEqual() }

// takeEqual returns the state of each chain of the session with the weight 1. Weights are relative:
// averages divide by their sum.
func (t *job) takeEqual() ([]samples.Sample, error) {
	return t.takeEach(func(chain int) (samples.Sample, error) { return samples.FromSession(t.session, chain, 1) })
}

// takeEach returns a sample of each chain.
func (t *job) takeEach(take func(chain int) (samples.Sample, error)) ([]samples.Sample, error) {
	states := make([]samples.Sample, t.spec.Chains)
	for chain := range states {
		var err error
		if states[chain], err = take(chain); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// draw writes Spec.Samples samples of every chain at the end of a run, as take returns them.
func (t *job) draw(take func(chain, draw int) (samples.Sample, error)) error {
	return t.writer.Draw(t.spec.Samples, func(chain, draw int) (samples.Sample, error) {
		s, err := take(chain, draw)
		if err == nil {
			err = t.probe.Check(s)
		}
		return s, err
	})
}

// checkFinite returns an error if a state has weights or predictions that are not finite. Such a
// state is never kept: one of them would make an average of many samples NaN.
func (t *job) checkFinite(states []samples.Sample) error {
	for _, s := range states {
		if err := t.probe.Check(s); err != nil {
			return err
		}
	}
	return nil
}

// job is the part of a training that a methodKind uses: the inputs of attach, and its results,
// which the steps that follow need. rates and temperatures have one entry for each step of the run.
type job struct {
	spec Spec
	data *datasets.Dataset
	plan langevin.Plan

	// mean and std are of the training images. Those of data may be what the network of an ONNX
	// file is normalised with instead.
	mean, std []float64

	parts     parts
	inputs    samples.Images // the training data as the network reads them, with values once the session is loaded
	unchanged samples.Images // the same without augmentation
	headNames []string       // of the parameters after the cut of an ONNX file
	fanIns    map[string]int // of the weights before it, where the first axis does not tell

	classWeights []float64 // by class, with the mean 1 over the images; nil without any

	rates        []float64              // by step, on the mean loss
	halves       bool                   // whether the rate of a chain that diverges can be halved, see maxHalvings
	temperatures []float64              // by step; nil for optimizers
	hooks        []langevin.Hook        // called between steps
	walk         mcmc.Chains            // of samplers on all data
	replicas     *langevin.Replicas     // of replica exchange
	meanField    *approximate.MeanField // of Bayes by Backprop
	lessons      lessons                // of a distillation; nil for other methods
	session      *graph.Session
	writer       *rundir.Writer
	probe        *samples.Probe    // checks samples before they are kept
	note         func(text string) // makes a remark to the user
}

// lessons are what the networks of a distillation learn from. The hook loads them.
type lessons interface {
	langevin.Hook
	weights() ([]float64, error) // of the networks in averages
	targetsDir() string          // where predictions are kept until the run is finished
}

// labelsInput is the name of the input with the examples' labels.
const labelsInput = "labels"

// give writes images into a new session, with their labels and the weights of these.
func (t *job) give(s *graph.Session, images samples.Images, labels []int32) error {
	err := images.Write(s)
	if err == nil {
		err = graph.Write(s, labelsInput, 0, 0, labels)
	}
	if err == nil && t.classWeights != nil {
		err = measure.WriteWeights(s, labels, t.classWeights)
	}
	return err
}

// posterior returns the posterior to sample.
func (t *job) posterior() langevin.Posterior {
	p := langevin.Posterior{DataSize: t.data.Len(), Copies: t.spec.Augment.copies(), Layers: t.spec.Priors, FanIns: t.fanIns}
	if t.spec.Prior != nil {
		p.Prior = *t.spec.Prior
	}
	if p.Prior.Kind == langevin.StartPrior {
		p.Layers = maps.Clone(p.Layers)
		if p.Layers == nil {
			p.Layers = map[string]langevin.Prior{}
		}
		for _, name := range t.headNames {
			if _, own := t.spec.Priors[langevin.LayerOf(name)]; p.Layers[name] == (langevin.Prior{}) && !own {
				p.Layers[name] = customaryPrior
			}
		}
	}
	return p
}

// watched returns one weight of the first layer, whose trace and R-hat are recorded; nil if there
// is none. The choice is arbitrary, but every run of a network has the same one.
func (t *job) watched(b *graph.Builder) *graph.Node {
	parameters := b.Parameters()
	if len(parameters) == 0 {
		return nil
	}
	return b.Apply(array.Element{Index: graph.ShapeOf(parameters[0]).Elements() / 2}, parameters[0])
}

// The metrics of a run: the loss and accuracy of the minibatch, and the watched weight. Samplers on
// all data record them as quantities of the draws instead: for a proposal, which is then rejected,
// they may not even be finite.
const (
	lossMetric     = "loss"
	accuracyMetric = "accuracy"
	watchedMetric  = "watched"
)
