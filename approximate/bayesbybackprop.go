package approximate

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// BayesByBackprop approximates a posterior by the MeanField q that minimises KL(q || posterior)
// (Blundell et al. 2015). On minibatch i of M, with weights w drawn from q, it lowers their
// equation 9,
//
//	F_i = pi_i [log q(w) - log p(w)] - log p(D_i | w),
//	w = mu + softplus(rho) epsilon,    epsilon ~ N(0, 1)
//
// whose expectations over an epoch add up to KL(q || posterior) - log p(D). Any optimizer can train
// it: all gradients come from one node. q has no correlations: where the posterior has some, q is
// narrower than its marginals. On a Gaussian posterior of precision A the optimum has the
// posterior's mean and the variances 1/A_ii.
type BayesByBackprop struct {
	Posterior langevin.Posterior // N and the priors, by the names of the network's own parameters

	InitialStd float64 // standard deviation of q at the start, above 0; its mean starts at the network's initial parameters

	// FrontLoaded is M for the weights pi_i = 2^(M-i)/(2^M - 1) of their section 3.4, with which
	// the prior dominates in an epoch's first minibatches and the data in its last ones. 0 means
	// pi_i = 1/M.
	FrontLoaded int

	// ClosedForm computes KL(q || prior) by formula instead of log q(w) - log p(w). Priors must be
	// Gaussian.
	ClosedForm bool

	// LocalReparameterization draws the products of linear layers' weights and inputs instead of
	// the weights, independently for each example, which lowers the variance of gradients (Kingma,
	// Salimans and Welling 2015, section 2.3). Biases and convolutions are drawn as usual.
	LocalReparameterization bool
}

// Validate reports attributes that are out of range.
func (v BayesByBackprop) Validate() error {
	if err := v.Posterior.Validate(); err != nil {
		return err
	}
	if !(v.InitialStd > 0 && v.InitialStd < math.Inf(1)) {
		return errors.Errorf("approximate: bayes by backprop: InitialStd must be positive, got %v", v.InitialStd)
	}
	if v.FrontLoaded < 0 || v.FrontLoaded > v.Posterior.DataSize {
		return errors.Errorf("approximate: bayes by backprop: FrontLoaded must be at most the %d examples, or 0 for uniform weights, got %d",
			v.Posterior.DataSize, v.FrontLoaded)
	}
	return nil
}

// Apply builds a network whose parameters are drawn from q at each step, and returns its output and
// q. Each parameter of the network becomes two, <name>.mu and <name>.rho, which an optimizer
// trains. Errors go to b.Fail.
func (v BayesByBackprop) Apply(b *graph.Builder, network func(b *graph.Builder, x *graph.Node) *graph.Node, x *graph.Node,
) (*graph.Node, *MeanField) {
	q := &MeanField{}
	b.Fail(v.Validate())
	if b.Err() != nil {
		return nil, q
	}
	replaced := 0
	outer := b.Hooks
	b.Hooks.Parameter = func(name string, initialize graph.Initializer, shape ...int) *graph.Node {
		return q.add(b, name, v.InitialStd, initialize, shape...)
	}
	if v.LocalReparameterization {
		b.Hooks.Apply = func(o graph.Op, in []*graph.Node) *graph.Node {
			product, ok := o.(op.MatMul)
			if !ok || len(in) != 2 || q.of(in[1]) == nil {
				return nil
			}
			replaced++
			return q.of(in[1]).product(b, product, in[0])
		}
	}
	y := network(b, x)
	b.Hooks = outer
	b.Fail(v.check(q, replaced))
	return y, q
}

// check sets the priors of the weights, and reports errors that depend on the network.
func (v BayesByBackprop) check(q *MeanField, replaced int) error {
	var names []string
	var shapes []tensor.Shape
	for _, f := range q.factors {
		names, shapes = append(names, f.name), append(shapes, graph.ShapeOf(f.mean))
	}
	switch {
	case len(names) == 0:
		return errors.New("approximate: bayes by backprop: the network has no parameters")
	case v.LocalReparameterization && replaced == 0:
		return errors.New("approximate: bayes by backprop: LocalReparameterization: the network must have a linear layer")
	}
	priors, err := v.Posterior.Priors(names, shapes)
	if err != nil {
		return err
	}
	for i, f := range q.factors {
		f.prior = priors[i]
		if v.ClosedForm && f.prior.Kind != langevin.GaussianPrior {
			return errors.Errorf("approximate: bayes by backprop: ClosedForm: the prior of %s must be Gaussian, got %v", f.name, f.prior)
		}
	}
	return nil
}

// Loss returns F_i divided by the number of data in a minibatch, N/M, like the minibatch's mean
// negative log-likelihood:
//
//	loss = negativeLogLikelihood + M pi_i / N divergence
//
// divergence is log q(w) - log p(w), or its expectation. Errors go to b.Fail.
func (v BayesByBackprop) Loss(b *graph.Builder, q *MeanField, negativeLogLikelihood *graph.Node) (loss, divergence *graph.Node) {
	if negativeLogLikelihood == nil {
		b.Fail(errors.New("approximate: bayes by backprop: the loss must not be nil"))
	} else if len(graph.ShapeOf(negativeLogLikelihood)) != 0 {
		b.Fail(errors.Errorf("approximate: bayes by backprop: the loss must be a scalar, got shape %v", graph.ShapeOf(negativeLogLikelihood)))
	}
	b.Fail(v.Posterior.CheckDataSize(b, negativeLogLikelihood))
	if b.Err() != nil {
		return nil, nil
	}
	divergence = q.divergence(b, v.ClosedForm)
	weight := b.Apply(op.Periodic{}, b.Table("complexity", v.complexity()), b.Header())
	return b.Apply(op.Add{}, negativeLogLikelihood, b.Apply(op.Multiply{}, weight, divergence)), divergence
}

// complexity returns M pi_i / N for i = 1, ..., M.
func (v BayesByBackprop) complexity() []float64 {
	n, m := float64(v.Posterior.DataSize), v.FrontLoaded
	if m == 0 {
		return []float64{1 / n}
	}
	weights := make([]float64, m)
	for i := range weights {
		weights[i] = -float64(m) / n * math.Exp2(-float64(i+1)) / math.Expm1(-float64(m)*math.Ln2)
	}
	return weights
}
