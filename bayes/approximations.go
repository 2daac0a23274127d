package bayes

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// descending is embedded by the approximations that minimize the potential by SGLD without noise,
// which is SGD. At temperature 0 SGLD steps along the gradient of U, prior included: Spec.Prior
// acts as weight decay.
type descending struct{ plain }

func (descending) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	if t.temperatures, err = t.plan.Temperatures(langevin.SGLD{}, 0); err != nil {
		return nil, nil, err
	}
	logits, loss = in.loss(b)
	return logits, loss, t.attachHalvable(b, langevin.SGLD{}, in.posterior, loss, in.posterior.StepSizes(t.rates))
}

// ensembleChains is the default number of an ensemble's chains. Lakshminarayanan et al. find little
// gain from more.
const ensembleChains = 5

// Ensemble is a deep ensemble: the last state of each chain, 5 by default, from different initial
// values. It has Spec.Prior, like a sampler, and no noise. Source:
// Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty estimation
// using deep ensembles (2017).
type Ensemble struct{ descending }

// Name implements Method.
func (Ensemble) Name() string { return "ensemble" }

func (Ensemble) traits() kindTraits {
	return kindTraits{rated: true, settings: []string{"prior", "priors"}}
}

func (Ensemble) check(s *Spec) error {
	if s.Chains < 2 { // 1 was given: the default is ensembleChains
		return errors.Errorf("pollen: ensemble: chains must be at least 2, got %d", s.Chains)
	}
	return nil
}

// Dropout is Monte Carlo dropout: in training and in prediction, it drops inputs of all linear
// layers, including those in blocks, except a linear layer that comes first. Predictions average
// Spec.Samples passes. Source: Gal and Ghahramani, Dropout as a Bayesian approximation (2016).
type Dropout struct {
	descending
	// Rate is the probability that an input is dropped, between 0 and 1.
	Rate float64
}

// Name implements Method.
func (Dropout) Name() string { return "mc-dropout" }

// Validate implements Method.
func (d Dropout) Validate() error {
	if !(d.Rate > 0 && d.Rate < 1) {
		return errors.Errorf("pollen: mc-dropout: Rate must be between 0 and 1, got %v", d.Rate)
	}
	return nil
}

func (Dropout) traits() kindTraits {
	return kindTraits{rated: true, settings: []string{"prior", "priors", "samples"}}
}

func (d Dropout) check(*Spec) error { return d.Validate() }

// passes returns the passes that are averaged, which differ in the inputs that they drop.
func (Dropout) passes(s *Spec) int { return s.Samples }

// network adds the dropout layers, which scale up the inputs that they keep. For the layers whose
// inputs are dropped, a prior N(0, s^2) is then the penalty of the paper's divergence from N(0,
// s^2/(1 - Rate)).
func (d Dropout) network(n layers.Sequential) (layers.Sequential, error) {
	dropped := false
	with, _ := d.within(n, false, &dropped)
	if !dropped {
		return nil, errors.New("mc-dropout: the network has no linear layer after another layer")
	}
	return with, nil
}

// within drops the inputs of linear layers that follow another layer, also in blocks. later reports
// whether a layer comes before n, and after whether one comes before the layer that follows n.
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

// SWAG fits a Gaussian to the states of a chain of SGD, whose covariance is the sum of a diagonal
// and a low-rank matrix. It keeps these states, and draws Spec.Samples from the Gaussian at the
// end. Source: Maddox et al., A simple baseline for Bayesian uncertainty in deep learning (2019).
type SWAG struct {
	descending
	// Rank is the number of columns of the low-rank part; 0 is a diagonal covariance.
	Rank int
}

// statesPerRank is the number of states that SWAG collects for each column, diagonalStates the
// number for a diagonal covariance.
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

func (SWAG) traits() kindTraits {
	return kindTraits{rated: true, collected: true, settings: []string{"prior", "priors", "burn-in", "samples"}}
}

func (g SWAG) check(*Spec) error { return g.Validate() }

func (g SWAG) kept(*Spec) int {
	if g.Rank >= 1 {
		return statesPerRank * g.Rank
	}
	return diagonalStates
}

// conclude reads the states from the disk, where they survived if the process was killed, and
// collects them by chain. The draws of a resumed run are the same, since they depend only on the
// seed and these files.
func (g SWAG) conclude(_ context.Context, t *job, _ tensor.Device) error {
	gaussians := make([]*approximate.SWAG, t.spec.Chains)
	for chain := range gaussians {
		var err error
		if gaussians[chain], err = approximate.NewSWAG(t.spec.Seed, g.Rank); err != nil {
			return err
		}
	}
	files, err := t.writer.StateFiles()
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
			return errors.Errorf("pollen: %s is of chain %d, must be one of the %d from number %d on", file, state.Chain, len(gaussians), t.spec.FirstChain)
		}
		if err := gaussians[chain].Collect(state); err != nil {
			return errors.WithMessage(err, "pollen: "+file)
		}
	}
	return t.draw(func(chain, draw int) (samples.Sample, error) { return gaussians[chain].Draw(draw) })
}

// LaplaceApproximation trains like Ensemble, and then draws Spec.Samples of the last layer's
// weights from a Gaussian around their final values. The last layer must be linear, with Gaussian
// priors. See approximate.LaplaceApproximation.
type LaplaceApproximation struct{ descending }

// Name implements Method.
func (LaplaceApproximation) Name() string { return "laplace" }

func (LaplaceApproximation) traits() kindTraits {
	return kindTraits{rated: true, drawn: true, settings: []string{"prior", "priors", "samples"}}
}

func (LaplaceApproximation) check(s *Spec) error {
	if !s.ClassWeights.isNone() {
		return errors.New("pollen: laplace: class-weights do not apply, since the curvature of the last layer is of a loss without them")
	}
	if p := (langevin.Posterior{Prior: *s.Prior, Layers: s.Priors}); !p.Gaussian() {
		return errors.New("pollen: laplace: all priors must be Gaussian")
	}
	return nil
}

func (LaplaceApproximation) network(n layers.Sequential) (layers.Sequential, error) {
	if _, ok := n[len(n)-1].(layers.Linear); !ok {
		return nil, errors.Errorf("laplace: the network must end in a linear layer, got %T", n[len(n)-1])
	}
	return n, nil
}

// conclude fits a Gaussian to the last layer of each chain, at the weights where it ended, and
// draws the samples from it.
func (LaplaceApproximation) conclude(ctx context.Context, t *job, device tensor.Device) error {
	session, err := t.lastInputs(device)
	if err != nil {
		return err
	}
	defer session.Close()
	gaussians := make([]*approximate.LaplaceApproximation, t.spec.Chains)
	for chain := range gaussians {
		if gaussians[chain], err = t.lastLayer(ctx, session, chain); err != nil {
			return err
		}
		if err := t.remarkAgreement(gaussians[chain]); err != nil {
			return err
		}
	}
	return t.draw(func(chain, draw int) (samples.Sample, error) { return gaussians[chain].Draw(draw) })
}

// minAgreement is the fraction of training images to which Laplace's draws, averaged, must give the
// same class as the trained network. Below it, the run gets a remark.
const minAgreement = 0.9

// remarkAgreement remarks that averages over an approximation's draws have lost what the network
// learned, as they do under a wide prior.
func (t *job) remarkAgreement(l *approximate.LaplaceApproximation) error {
	agreement, err := l.Agreement(t.spec.Samples)
	if err == nil && agreement < minAgreement {
		t.note(fmt.Sprintf("laplace: the average over %d draws has the class of the trained network on only %.0f %% of the training images: the prior is so wide "+
			"that the last layer's weights are hardly determined; a narrower prior or more samples would keep more of its accuracy", t.spec.Samples, 100*agreement))
	}
	return err
}

// The outputs of lastInputs.
const (
	inputsOutput        = "inputs"        // of the last layer
	probabilitiesOutput = "probabilities" // of the classes
)

// lastInputs returns a session whose steps go through the training images in order, unchanged, and
// whose outputs are what the Laplace approximation of a last layer needs: its inputs, and the
// probabilities of the classes. It has parameters without updates, so that lastLayer puts one chain
// after the other into it.
func (t *job) lastInputs(device tensor.Device) (*graph.Session, error) {
	program, _, err := t.lastProgram()
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if err := t.unchanged.Write(session); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// lastProgram returns the program of lastInputs, and the number of the last layer's inputs.
func (t *job) lastProgram() (program *graph.Program, inputs int, err error) {
	network, b := t.parts.network, graph.New(tensor.Float32)
	// No dropout, no augmentation.
	b.Mode = graph.Prediction
	before, last := network[:len(network)-1], network[len(network)-1]
	x := before.Apply(b, t.unchanged.Input(b, op.Batch{Size: t.spec.Batch}, t.data.Len()))
	b.Output(inputsOutput, x)
	b.Output(probabilitiesOutput, b.Apply(op.Softmax{}, last.Apply(b, x)))
	if b.Err() == nil {
		inputs = graph.ShapeOf(x)[1]
	}
	program, err = b.Compile()
	return program, inputs, err
}

// lastLayer approximates the posterior of a chain's last layer with a session of lastInputs.
func (t *job) lastLayer(ctx context.Context, session *graph.Session, chain int) (*approximate.LaplaceApproximation, error) {
	mode, err := samples.FromSession(t.session, chain, 1)
	if err != nil {
		return nil, err
	}
	var names []string
	var shapes []tensor.Shape
	for _, p := range mode.Parameters {
		names, shapes = append(names, p.Name), append(shapes, p.Shape)
	}
	priors, err := t.posterior().Priors(names, shapes)
	if err != nil {
		return nil, err
	}
	l, err := approximate.NewLaplaceApproximation(t.spec.Seed, mode, langevin.LayerOf(names[len(names)-1]), priors)
	if err != nil {
		return nil, err
	}
	if err := mode.Put(session, 0); err != nil {
		return nil, err
	}
	n, size := t.data.Len(), t.spec.Batch
	inputs, probabilities := make([]float32, size*l.Inputs()), make([]float32, size*t.data.Classes)
	for at := 0; at < n && ctx.Err() == nil; at += size {
		if err := session.SetStep(0, uint64(at/size)); err != nil {
			return nil, err
		}
		if err := session.Run(1); err != nil {
			return nil, err
		}
		if err := session.ReadFloats(inputsOutput, 0, inputs); err != nil {
			return nil, err
		}
		if err := session.ReadFloats(probabilitiesOutput, 0, probabilities); err != nil {
			return nil, err
		}
		rows := min(size, n-at) // the last batch continues with the first images
		if err := l.Observe(inputs[:rows*l.Inputs()], probabilities[:rows*t.data.Classes]); err != nil {
			return nil, err
		}
	}
	return l, ctx.Err()
}

// BayesByBackprop is variational inference: it fits a Gaussian with a diagonal covariance to the
// posterior, by Adam on the evidence lower bound, and draws Spec.Samples from it. See
// approximate.BayesByBackprop.
type BayesByBackprop struct {
	plain
	// InitialStd is the initial standard deviation of each weight, positive.
	InitialStd float64
}

// Name implements Method.
func (BayesByBackprop) Name() string { return "bbb" }

// Validate implements Method.
func (v BayesByBackprop) Validate() error { return v.rule(langevin.Posterior{DataSize: 1}).Validate() }

func (BayesByBackprop) traits() kindTraits {
	return kindTraits{rated: true, drawn: true, settings: []string{"prior", "priors", "samples"}}
}

func (v BayesByBackprop) check(*Spec) error { return v.Validate() }

func (v BayesByBackprop) rule(posterior langevin.Posterior) approximate.BayesByBackprop {
	return approximate.BayesByBackprop{
		Posterior: posterior, InitialStd: v.InitialStd,
		ClosedForm: posterior.Gaussian(), LocalReparameterization: true,
	}
}

// attach makes the means and standard deviations of the weights the graph's parameters. Each step
// draws weights from them, and descends along the gradient of the bound, while the recorded loss is
// only the cross-entropy, as for other methods.
func (v BayesByBackprop) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	rule := v.rule(in.posterior)
	logits, t.meanField = rule.Apply(b, in.network.Apply, in.x)
	if b.Err() != nil {
		return nil, nil, b.Err()
	}
	loss = measure.Loss(b, logits, in.labels, in.weights)
	bound, _ := rule.Loss(b, t.meanField, loss)
	t.minimize(b, customaryAdam, bound)
	return logits, loss, b.Err()
}

func (BayesByBackprop) conclude(_ context.Context, t *job, _ tensor.Device) error {
	return t.draw(func(chain, draw int) (samples.Sample, error) { return t.meanField.Draw(t.session, chain, draw) })
}
