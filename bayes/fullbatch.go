package bayes

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// firstExactRate is the initial step size of samplers on all data, as a learning rate on the mean
// loss. It adapts during burn-in.
const firstExactRate = 0.01

// NUTS is the no-U-turn sampler, see mcmc.NUTS: Hamiltonian Monte Carlo that chooses the number of
// leapfrog steps automatically, and adapts masses as well as the step size. Its warm-up is the
// Spec's burn-in, usually a few hundred draws. A step, and so an epoch, is a draw: Epochs of 1000
// with a BurnIn of 300 give 700 draws. A trajectory of n leapfrog steps takes n + 1 passes over the
// data; a step of HMC is one pass.
type NUTS struct {
	// TargetAcceptance is the acceptance probability that burn-in adapts the step size to; 0 is
	// 0.8. A larger one gives smaller steps.
	TargetAcceptance float64
	// MaxDepth bounds the doublings of a trajectory, which has fewer than 2^MaxDepth leapfrog
	// steps; 0 is 10.
	MaxDepth int
}

// Name implements Method.
func (NUTS) Name() string { return "nuts" }

// Validate implements Method.
func (n NUTS) Validate() error { return n.sampler(1, 1).Validate() }

// sampler returns the sampler with a warm-up of some draws.
func (n NUTS) sampler(warmup int, stepSize float64) mcmc.NUTS {
	return mcmc.NUTS{StepSize: stepSize, Warmup: warmup, TargetAcceptance: n.TargetAcceptance, MaxDepth: n.MaxDepth}
}

// fullBatchKind is the kind of a sampler on all data: NUTS, a proposal with a Metropolis test, or
// MCLMC. Parameters, momenta and energies are float64; the network computes its loss and gradients
// in float32. Rounding changes the potential to another, equally fixed function of the parameters.
// Trajectories in any fixed field are reversible and preserve volume, so the sampler targets
// exactly the distribution of that potential, whose logarithm is off by some 5e-5 for lenet-small
// on 300 images.
type fullBatchKind struct {
	plain
	method Method
}

func (w fullBatchKind) traits() kindTraits {
	t := kindTraits{tempered: true, exact: true, epochs: 2000, settings: samplerSettings}
	if _, ok := w.method.(NUTS); ok {
		t.paths, t.epochs = true, 500
	}
	return t
}

func (w fullBatchKind) check(s *Spec) error {
	if !(*s.Temperature > 0) {
		return errors.Errorf("pollen: %s: temperature must be positive, got %v", MethodName(w.method), *s.Temperature)
	}
	if m, ok := w.method.(mcmc.MALA); ok && m.Test != mcmc.AcceptanceExact {
		return errors.New("pollen: mala: acceptance on minibatches does not sample the posterior, and is for custom graphs")
	}
	_, err := w.sampler(*s.BurnIn, 1)
	return err
}

// sampler returns the sampler, whose step size adapts during burnIn steps.
func (w fullBatchKind) sampler(burnIn, examples int) (mcmc.Sampler, error) {
	if err := w.method.Validate(); err != nil {
		return nil, err
	}
	leaps := 1
	if hmc, ok := w.method.(mcmc.HMC); ok {
		leaps = hmc.LeapfrogSteps
	}
	if burnIn < leaps {
		return nil, errors.Errorf("pollen: %s: burn-in is %d epochs of one step each, must be at least the %d of a proposal, in which the step size adapts",
			MethodName(w.method), burnIn, leaps)
	}
	// h is the step size of Langevin dynamics, theta - h grad U + sqrt(2h) noise. A leapfrog step
	// of length leap with fresh momenta is such a step with h = leap^2/2.
	h := firstExactRate / float64(examples)
	leap := math.Sqrt(2 * h)
	var sampler mcmc.Sampler
	switch m := w.method.(type) {
	case NUTS:
		sampler = m.sampler(burnIn, leap)
	case mcmc.HMC:
		sampler = mcmc.Metropolis{Proposal: m, StepSize: leap, Warmup: burnIn / leaps, TargetAcceptance: 0.8}
	case mcmc.MCLMC:
		sampler = mcmc.Unadjusted{Dynamics: m, StepSize: leap, Warmup: burnIn}
	case mcmc.Proposal:
		sampler = mcmc.Metropolis{Proposal: m, StepSize: h, Warmup: burnIn}
	}
	return sampler, sampler.Validate()
}

// attach records loss, accuracy and the watched weight as quantities of the draws.
func (w fullBatchKind) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	t.temperatures = slices.Repeat([]float64{*t.spec.Temperature}, t.plan.Steps)
	// Only the network computes in float32; its loss is cast back, and all that follows is float64.
	narrow := b.Within(tensor.Float32)
	logits, loss = in.loss(b)
	accuracy := b.Apply(op.Accuracy{}, logits, in.labels)
	narrow()
	loss, accuracy = b.Cast(loss), b.Cast(accuracy)
	sampler, err := w.sampler(t.plan.BurnIn, t.data.Len())
	if err != nil {
		return nil, nil, err
	}
	target := mcmc.Target{Potential: in.posterior.Potential(b, loss), Temperature: *t.spec.Temperature}
	target.Quantities = []mcmc.Quantity{
		{Name: lossMetric, Node: loss}, {Name: accuracyMetric, Node: accuracy},
	}
	if watched := t.watched(b); watched != nil {
		target.Quantities = append(target.Quantities, mcmc.Quantity{Name: watchedMetric, Node: watched})
	}
	if t.walk, err = sampler.Attach(b, target); err != nil {
		return nil, nil, err
	}
	t.hooks = append(t.hooks, t.walk)
	return logits, loss, nil
}

// states returns the present draws. The session's parameters may differ from these: they may be a
// proposal that is not accepted yet, or a point of a trajectory.
func (fullBatchKind) states(t *job, _ int) ([]samples.Sample, error) {
	return t.takeEach(func(chain int) (samples.Sample, error) { return t.walk.Current(t.session, chain) })
}

// drawn returns a quantity of a chain's present draw. name is one of the quantities of attach.
func (t *job) drawn(chain int, name string) (float64, error) {
	var value [1]float64
	err := mcmc.ReadDraw(t.session, chain, name, value[:])
	return value[0], err
}
