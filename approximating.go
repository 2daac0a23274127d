package pollen

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// descending is shared by the approximations that descend by SGLD without noise, which is SGD on
// the potential.
type descending struct{ plain }

func (descending) traits() traits { return traits{rated: true} }

func (descending) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	if t.temperatures, err = t.plan.Temperatures(langevin.SGLD{}, 0); err != nil {
		return nil, nil, err
	}
	logits, loss = in.loss(b)
	return logits, loss, langevin.Attach(b, langevin.SGLD{}, in.posterior, loss, in.posterior.StepSizes(t.rates), t.temperatures)
}

// Ensemble is a deep ensemble: the last state of each chain, each from initial values of its own.
// Source: Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty
// estimation using deep ensembles (2017).
type Ensemble struct{ descending }

// Name implements Method.
func (Ensemble) Name() string { return "ensemble" }

// Validate implements Method.
func (Ensemble) Validate() error { return nil }

func (Ensemble) applies(setting string) bool { return setting == "prior" || setting == "priors" }

func (Ensemble) check(s *Spec) error {
	if s.Chains < 2 {
		return errors.Errorf("pollen: chains is %d, an ensemble wants at least 2: each is a member", s.Chains)
	}
	return nil
}

// Dropout is Monte Carlo dropout: inputs of all linear layers, also in blocks, except one that
// comes first, are dropped in training and in predictions, of which Spec.Samples are averaged.
// Source: Gal and Ghahramani, Dropout as a Bayesian approximation (2016).
type Dropout struct {
	descending
	Rate float64 // the probability of an input to be dropped, between 0 and 1
}

// Name implements Method.
func (Dropout) Name() string { return "mc-dropout" }

// Validate implements Method.
func (d Dropout) Validate() error {
	if !(d.Rate > 0 && d.Rate < 1) {
		return errors.Errorf("pollen: mc-dropout: Rate is %v, wants a number between 0 and 1", d.Rate)
	}
	return nil
}

func (Dropout) applies(setting string) bool {
	return setting == "prior" || setting == "priors" || setting == "samples"
}

func (d Dropout) check(*Spec) error { return d.Validate() }

// passes differ in what they drop.
func (Dropout) passes(s *Spec) int { return s.Samples }

func (d Dropout) network(n layers.Sequential) (layers.Sequential, error) {
	dropped := false
	with, _ := d.within(n, false, &dropped)
	if !dropped {
		return nil, errors.New("mc-dropout: the network has no linear layer after another layer")
	}
	return with, nil
}

// within drops the inputs of the linear layers that follow another one, also in blocks of layers.
// Later says whether one comes before n, and then whether one comes before what follows n.
func (d Dropout) within(n layers.Sequential, later bool, dropped *bool) (with layers.Sequential, after bool) {
	for _, layer := range n {
		switch l := layer.(type) {
		case layers.Flatten:
		case layers.Sequential:
			layer, later = d.within(l, later, dropped)
		case layers.Residual:
			var body, shortcut bool
			l.Body, body = d.within(l.Body, later, dropped)
			l.Shortcut, shortcut = d.within(l.Shortcut, later, dropped)
			layer, later = l, body || shortcut
		case layers.Linear:
			if later {
				with = append(with, layers.Dropout{Rate: d.Rate, AlsoPredicting: true})
				*dropped = true
			}
			later = true
		default:
			later = true
		}
		with = append(with, layer)
	}
	return with, later
}

// SWAG is a Gaussian fitted to the states of a chain that keeps moving, with a low-rank covariance
// added to a diagonal one. It keeps these states, and draws Spec.Samples from it at the end.
// Source: Maddox et al., A simple baseline for Bayesian uncertainty in deep learning (2019).
type SWAG struct {
	descending
	Rank int // columns of the covariance; 0 is diagonal
}

// statesPerRank is how many states SWAG collects for each of its columns, diagonalStates how many
// without columns.
const (
	statesPerRank  = 2
	diagonalStates = 40
)

// Name implements Method.
func (SWAG) Name() string { return "swag" }

// Validate implements Method.
func (g SWAG) Validate() error {
	_, err := approximate.NewSWAG(0, g.Rank)
	return err
}

func (SWAG) traits() traits { return traits{rated: true, collected: true} }

func (SWAG) applies(setting string) bool {
	return setting == "prior" || setting == "priors" || setting == "burn-in" || setting == "samples"
}

func (g SWAG) check(*Spec) error { return g.Validate() }

func (g SWAG) kept(*Spec) int {
	if g.Rank >= 1 {
		return statesPerRank * g.Rank
	}
	return diagonalStates
}

func (g SWAG) conclude(t *training) error {
	gaussians := make([]*approximate.SWAG, t.spec.Chains)
	for chain := range gaussians {
		var err error
		if gaussians[chain], err = approximate.NewSWAG(t.spec.Seed, g.Rank); err != nil {
			return err
		}
	}
	files, err := t.writer.states.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		state, err := samples.ReadSample(file)
		if err != nil {
			return err
		}
		chain := state.Chain - t.spec.FirstChain
		if chain < 0 || chain >= len(gaussians) {
			return errors.Errorf("pollen: %s is of chain %d, wants one of the %d from number %d on", file, state.Chain, len(gaussians), t.spec.FirstChain)
		}
		if err := gaussians[chain].Collect(state); err != nil {
			return errors.WithMessage(err, file)
		}
	}
	return t.writer.draw(t.spec.Samples, func(chain, draw int) (samples.Sample, error) { return gaussians[chain].Draw(draw) })
}

// BayesByBackprop fits a Gaussian with a diagonal covariance to the posterior, by Adam on the
// evidence lower bound, and draws Spec.Samples from it at the end; see approximate.BayesByBackprop.
// With a Gaussian prior the divergence is in closed form.
type BayesByBackprop struct {
	plain
	InitialDeviation float64 // of each weight, above 0
}

// Name implements Method.
func (BayesByBackprop) Name() string { return "bbb" }

// Validate implements Method.
func (v BayesByBackprop) Validate() error { return v.rule(langevin.Posterior{DataSize: 1}).Validate() }

func (BayesByBackprop) traits() traits { return traits{rated: true, drawn: true} }

func (BayesByBackprop) applies(setting string) bool {
	return setting == "prior" || setting == "priors" || setting == "samples"
}

func (v BayesByBackprop) check(*Spec) error { return v.Validate() }

func (v BayesByBackprop) rule(posterior langevin.Posterior) approximate.BayesByBackprop {
	return approximate.BayesByBackprop{
		Posterior: posterior, InitialDeviation: v.InitialDeviation,
		ClosedForm: posterior.Gaussian(), LocalReparameterization: true,
	}
}

func (v BayesByBackprop) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	rule := v.rule(in.posterior)
	logits, t.meanField = rule.Apply(b, in.network.Apply, in.x)
	if b.Err() != nil {
		return nil, nil, b.Err()
	}
	loss = b.Apply(op.CrossEntropy{}, logits, in.labels)
	bound, _ := rule.Loss(b, t.meanField, loss)
	parameters := b.Parameters()
	adam := optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	optimizers.Update(b, adam, parameters, b.Gradients(bound, parameters...), b.Table("rates", t.rates))
	return logits, loss, b.Err()
}

func (BayesByBackprop) conclude(t *training) error {
	return t.writer.draw(t.spec.Samples, func(chain, draw int) (samples.Sample, error) { return t.meanField.Draw(t.session, chain, draw) })
}
