package approximate

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor/random"
)

// LaplaceApproximation is Laplace's approximation of the posterior of a network's last layer, with
// the other layers fixed: a Gaussian around the layer's weights W [K F] and bias [K], with the
// covariance
//
//	(N G x A + P)^-1,    A = mean of a a',    G = mean of diag(p) - p p',    a = (x, 1)
//
// over N examples, where x are the inputs to the layer and p the probabilities of an example. x
// between G and A is the Kronecker product, and P is diagonal, the precision of the Gaussian prior.
// G x A approximates the mean of (diag(p) - p p') x a a', the Hessian of the mean loss. The
// eigenvectors of the factors diagonalise the whole precision, so that the prior enters exactly and
// not as a damping of the factors. Around any point other than the posterior's mode the
// approximation is wrong.
//
// The logits are linear in these weights, so that the average over many draws is the linearised
// predictive of Immer, Korzepa and Bauer (2021). Under a prior far wider than the weights, logits
// vary so much in directions without curvature that an average over a few draws is close to chance:
// Agreement measures that. Sources: MacKay, A practical Bayesian framework for backpropagation
// networks (1992); Ritter, Botev and Barber, A scalable Laplace approximation for neural networks
// (2018); Daxberger et al., Laplace redux (2021).
type LaplaceApproximation struct {
	seed         uint64
	mode         samples.Sample
	weight, bias int       // positions of the last layer's parameters; bias is -1 without one
	scales       []float64 // standard deviations of the prior, by input
	n            int
	inputs       *mat.SymDense // sum of a a', scaled
	outputs      *mat.SymDense // sum of diag(p) - p p'
	seen         []float32     // inputs of the first examples, up to agreementExamples
	classes      []int         // classes that the mode predicts for them

	// Standard deviations along the eigenvectors [K F], and the eigenvectors themselves, as the
	// columns of [K K] and [F F].
	stds, rows, columns *mat.Dense
}

// NewLaplaceApproximation begins an approximation of the named layer around a sample's parameters.
// priors has the prior of each of the sample's parameters, in order. Draws use the seed, and share
// the values of the other layers with mode, which must not be changed. It returns an error if the
// layer is not linear or its priors are not Gaussian.
func NewLaplaceApproximation(seed uint64, mode samples.Sample, layer string, priors []langevin.Prior) (*LaplaceApproximation, error) {
	if err := mode.Validate(); err != nil {
		return nil, errors.Wrap(err, "approximate: laplace")
	}
	named := func(name string) int {
		return slices.IndexFunc(mode.Parameters, func(p samples.Parameter) bool { return p.Name == layer+name })
	}
	l := &LaplaceApproximation{seed: seed, mode: mode, weight: named(".weight"), bias: named(".bias")}
	if l.weight < 0 || len(mode.Parameters[l.weight].Shape) != 2 || len(priors) != len(mode.Parameters) {
		return nil, errors.Errorf("approximate: laplace: %[3]s must be a linear layer with weights [K F], with a prior for each of %[2]d parameters, got %[1]d",
			len(priors), len(mode.Parameters), layer)
	}
	shape := mode.Parameters[l.weight].Shape
	for range shape[1] {
		l.scales = append(l.scales, priors[l.weight].Scale)
	}
	if l.bias >= 0 {
		l.scales = append(l.scales, priors[l.bias].Scale)
	}
	for i, p := range priors {
		if (i == l.weight || i == l.bias) && p.Kind != langevin.GaussianPrior {
			return nil, errors.Errorf("approximate: laplace: the prior of %s must be Gaussian", mode.Parameters[i].Name)
		}
	}
	l.inputs, l.outputs = mat.NewSymDense(len(l.scales), nil), mat.NewSymDense(shape[0], nil)
	return l, nil
}

// LaplaceBytes returns the memory of an approximation, without its mode, for a layer with the given
// numbers of inputs and outputs that observes batches of the given size: the factors, the
// eigenvectors and the work space to compute them, the standard deviations, a draw, and a batch.
func LaplaceBytes(inputs, outputs, batch int) int {
	const each = 4 // matrices of the size of a factor: the factor, a term, its eigenvectors, work space
	f := inputs + 1
	return 8*(each*(f*f+outputs*outputs)+3*f*outputs+2*batch*f) + 4*agreementExamples*inputs + 8*agreementExamples*(outputs+1)
}

// agreementExamples bounds the examples on which draws are compared with the mode.
const agreementExamples = 256

// Inputs returns F, the number of the layer's inputs.
func (l *LaplaceApproximation) Inputs() int { return l.mode.Parameters[l.weight].Shape[1] }

// Observe adds examples: their inputs to the layer [n F] and their probabilities [n K]. Inputs that
// are not finite, and rows of probabilities that are not distributions, are errors, after which the
// approximation is as before.
func (l *LaplaceApproximation) Observe(inputs, probabilities []float32) error {
	k, f := l.outputs.SymmetricDim(), l.Inputs()
	n := len(probabilities) / k
	if n*k != len(probabilities) || n*f != len(inputs) {
		return errors.Errorf("approximate: laplace: an example must have %d inputs and %d probabilities, got %d and %d in all", f, k, len(inputs), len(probabilities))
	}
	if n == 0 {
		return nil
	}
	if err := checkObserved(inputs, probabilities, k); err != nil {
		return err
	}
	a := mat.NewDense(len(l.scales), n, nil)
	for i := range n {
		for j, scale := range l.scales {
			x := 1.0
			if j < f {
				x = float64(inputs[i*f+j])
			}
			a.Set(j, i, x*scale)
		}
		if row := probabilities[i*k:][:k]; len(l.classes) < agreementExamples {
			l.seen, l.classes = append(l.seen, inputs[i*f:][:f]...), append(l.classes, slices.Index(row, slices.Max(row)))
		}
		for r, p := range probabilities[i*k : (i+1)*k] {
			l.outputs.SetSym(r, r, l.outputs.At(r, r)+float64(p))
			for c, q := range probabilities[i*k:][:r+1] {
				l.outputs.SetSym(c, r, l.outputs.At(c, r)-float64(p)*float64(q))
			}
		}
	}
	var sum mat.SymDense
	sum.SymOuterK(1, a)
	l.inputs.AddSym(l.inputs, &sum)
	l.n += n
	l.stds = nil
	return nil
}

// checkObserved returns an error for inputs that are not finite, and for rows of k probabilities
// that are not distributions up to the rounding of a softmax.
func checkObserved(inputs, probabilities []float32, k int) error {
	for i, x := range inputs {
		if x-x != 0 {
			return errors.Errorf("approximate: laplace: inputs must be finite, got %v at %d", x, i)
		}
	}
	for i := range len(probabilities) / k {
		sum := 0.0
		for _, p := range probabilities[i*k : (i+1)*k] {
			if !(p >= 0) {
				return errors.Errorf("approximate: laplace: example %d: probabilities must be at least 0, got %v", i, p)
			}
			sum += float64(p)
		}
		if !(math.Abs(sum-1) < 1e-3) {
			return errors.Errorf("approximate: laplace: example %d: probabilities must sum to 1, got %v", i, sum)
		}
	}
	return nil
}

// fit computes the eigenvectors and the standard deviations along them. The scaled inputs are in
// units of the prior's standard deviations; in these units the precision is N G x A + I.
func (l *LaplaceApproximation) fit() error {
	if l.n == 0 {
		return errors.New("approximate: laplace: no examples observed")
	}
	var g, a mat.EigenSym
	if !g.Factorize(l.outputs, true) || !a.Factorize(l.inputs, true) {
		return errors.New("approximate: laplace: the eigenvectors of a factor were not found: inputs or probabilities are not finite")
	}
	l.rows, l.columns = new(mat.Dense), new(mat.Dense)
	g.VectorsTo(l.rows)
	a.VectorsTo(l.columns)
	byRow, byColumn := g.Values(nil), a.Values(nil)
	l.stds = mat.NewDense(len(byRow), len(byColumn), nil)
	for i, r := range byRow {
		for j, c := range byColumn {
			curvature := max(0, r) * max(0, c) / float64(l.n) // r and c belong to sums over N examples: this is N G x A
			l.stds.Set(i, j, 1/math.Sqrt(1+curvature))
		}
	}
	return nil
}

// Draw draws a sample of weight 1. Different draw numbers give independent samples; the sample's
// step is the mode's plus the draw number.
func (l *LaplaceApproximation) Draw(draw int) (samples.Sample, error) {
	if draw < 0 || draw > random.MaxStep-l.mode.Step {
		return samples.Sample{}, errors.Errorf("approximate: laplace: the draw must be at least 0, got %d", draw)
	}
	if l.stds == nil {
		if err := l.fit(); err != nil {
			return samples.Sample{}, err
		}
	}
	k, f := l.stds.Dims()
	z := make([]float64, k*f)
	random.Normals(z, 0, random.Address{Seed: l.seed, Chain: uint32(l.mode.Chain), Step: uint64(l.mode.Step + draw), Stream: drawStream})
	var move mat.Dense
	move.MulElem(l.stds, mat.NewDense(k, f, z))
	move.Mul(l.rows, &move)
	move.Mul(&move, l.columns.T())

	sample := samples.Sample{Chain: l.mode.Chain, Step: l.mode.Step + draw, Weight: 1, Parameters: slices.Clone(l.mode.Parameters)}
	for _, at := range []int{l.weight, l.bias} {
		if at < 0 {
			continue
		}
		p := &sample.Parameters[at]
		p.Values = slices.Clone(p.Values)
		for i := range p.Values {
			row, column := i, f-1 // of a bias
			if at == l.weight {
				row, column = i/p.Shape[1], i%p.Shape[1]
			}
			p.Values[i] = float32(float64(p.Values[i]) + l.scales[column]*move.At(row, column))
		}
	}
	return sample, errors.Wrap(sample.Validate(), "approximate: laplace")
}

// Agreement returns the fraction of the examples, up to 256 of them, for which the average of the
// first draws predicts the same class as the mode.
func (l *LaplaceApproximation) Agreement(draws int) (float64, error) {
	if l.n == 0 || draws < 1 {
		return 0, errors.Errorf("approximate: laplace: agreement needs examples and at least 1 draw, got %d and %d", l.n, draws)
	}
	k, f := l.outputs.SymmetricDim(), l.Inputs()
	average, logits := make([]float64, len(l.classes)*k), make([]float64, k)
	for draw := range draws {
		s, err := l.Draw(draw)
		if err != nil {
			return 0, err
		}
		for i := range l.classes {
			for r := range logits {
				logits[r] = 0
				if l.bias >= 0 {
					logits[r] = float64(s.Parameters[l.bias].Values[r])
				}
				for j, x := range l.seen[i*f:][:f] {
					logits[r] += float64(x) * float64(s.Parameters[l.weight].Values[r*f+j])
				}
			}
			sum := floats.LogSumExp(logits)
			for r, v := range logits {
				average[i*k+r] += math.Exp(v - sum)
			}
		}
	}
	same := 0
	for i, class := range l.classes {
		if floats.MaxIdx(average[i*k:][:k]) == class {
			same++
		}
	}
	return float64(same) / float64(len(l.classes)), nil
}
