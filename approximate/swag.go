package approximate

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// SWAG is a Gaussian around the mean of the states that stochastic gradient descent with a constant
// learning rate visits (Maddox et al. 2019, algorithm 1). The states theta_1, ..., theta_T,
// collected at a plan's sample times, have
//
//	mean = 1/T sum of theta_i,    Sigma = 1/T sum of theta_i^2 - mean^2, elementwise,
//	D_i = theta_i - 1/i sum up to i of theta_j
//
// and a draw is, where D are the last Rank columns D_i and z1, z2 are standard normal,
//
//	theta = mean + sqrt(Sigma/2) z1 + D z2 / sqrt(2 (Rank - 1))
//
// Rank 0 is the paper's SWAG-diagonal, mean + sqrt(Sigma) z1. The width of the Gaussian depends on
// the learning rate and the batch size, not on any temperature. It collects samples of one chain
// and ignores their weights. Memory is 4 (Rank + 4) bytes for each parameter.
type SWAG struct {
	seed          uint64
	rank          int
	count         int
	chain, step   int
	parameters    []samples.Parameter // without values
	mean, squares []float64           // squares: sum of (theta_i - mean)^2
	columns       [][]float32         // column i is D of the samples i, i + rank, ...
}

// NewSWAG returns an empty Gaussian. Draws use the seed. The rank must be 0 or at least 2: for 1
// the formula divides by 0.
func NewSWAG(seed uint64, rank int) (*SWAG, error) {
	if rank < 0 || rank == 1 {
		return nil, errors.Errorf("approximate: swag: Rank must be at least 2, or 0 for a diagonal covariance, got %d", rank)
	}
	return &SWAG{seed: seed, rank: rank, columns: make([][]float32, rank)}, nil
}

// SWAGBytes returns the memory of a SWAG for a number of weights.
func SWAGBytes(rank, weights int) int { return 4 * (rank + 4) * weights }

// Collect adds a state. It must have the chain and the parameters of the previous states, and a
// later step.
func (g *SWAG) Collect(s samples.Sample) error {
	if err := g.check(s); err != nil {
		return errors.Wrap(err, "approximate: swag")
	}
	if g.count == 0 {
		n := 0
		for _, p := range s.Parameters {
			g.parameters = append(g.parameters, samples.Parameter{Name: p.Name, Shape: append(tensor.Shape{}, p.Shape...)})
			n += len(p.Values)
		}
		g.mean, g.squares = make([]float64, n), make([]float64, n)
		for i := range g.columns {
			g.columns[i] = make([]float32, n)
		}
	}
	g.chain, g.step = s.Chain, s.Step
	var column []float32
	if g.rank > 0 {
		column = g.columns[g.count%g.rank]
	}
	g.count++
	i := 0
	for _, p := range s.Parameters {
		for _, theta := range p.Values {
			before := float64(theta) - g.mean[i]
			g.mean[i] += before / float64(g.count)
			after := float64(theta) - g.mean[i]
			g.squares[i] += float64(before * after)
			if column != nil {
				column[i] = float32(after)
			}
			i++
		}
	}
	return nil
}

func (g *SWAG) check(s samples.Sample) error {
	if err := s.Validate(); err != nil || g.count == 0 {
		return err
	}
	if s.Chain != g.chain || s.Step <= g.step || len(s.Parameters) != len(g.parameters) {
		return errors.Errorf("states must be of one chain and network and of rising steps, got chain %d, step %d, %d parameters after %d, %d and %d",
			s.Chain, s.Step, len(s.Parameters), g.chain, g.step, len(g.parameters))
	}
	for i, p := range s.Parameters {
		if want := g.parameters[i]; p.Name != want.Name || !p.Shape.Equal(want.Shape) {
			return errors.Errorf("parameter %d must be %s %v as before, got %s %v", i, want.Name, want.Shape, p.Name, p.Shape)
		}
	}
	return nil
}

// Collected returns the number of collected states.
func (g *SWAG) Collected() int { return g.count }

// Draw draws a sample of weight 1. Different draw numbers give independent samples; the sample's
// step is the last state's plus the draw number. Fewer than two states, or fewer than the rank, are
// an error.
func (g *SWAG) Draw(draw int) (samples.Sample, error) {
	if want := max(2, g.rank); g.count < want {
		return samples.Sample{}, errors.Errorf("approximate: swag: a draw needs at least %d collected states, got %d", want, g.count)
	}
	if draw < 0 || draw > random.MaxStep-g.step {
		return samples.Sample{}, errors.Errorf("approximate: swag: the draw must be at least 0, got %d", draw)
	}
	n := len(g.mean)
	z := make([]float64, n+g.rank)
	random.Normals(z, 0, random.Address{Seed: g.seed, Chain: uint32(g.chain), Step: uint64(g.step + draw), Stream: drawStream})
	z, weights := z[:n], z[n:]
	diagonal := 1 / float64(g.count)
	if g.rank > 0 {
		diagonal /= 2
	}
	for i := range z {
		z[i] *= math.Sqrt(diagonal * g.squares[i])
	}
	for k, weight := range weights {
		weight /= math.Sqrt(2 * float64(g.rank-1))
		for i, std := range g.columns[k] {
			z[i] += float64(weight * float64(std))
		}
	}
	sample := samples.Sample{Chain: g.chain, Step: g.step + draw, Weight: 1}
	first := 0
	for _, p := range g.parameters {
		p.Values = make([]float32, p.Shape.Elements())
		for i := range p.Values {
			p.Values[i] = float32(g.mean[first+i] + z[first+i])
		}
		first += len(p.Values)
		sample.Parameters = append(sample.Parameters, p)
	}
	return sample, errors.Wrap(sample.Validate(), "approximate: swag")
}
