package layers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Dropout sets elements to 0 at random and scales up the others, see op.Dropout, in graphs for
// training. In graphs for prediction it is the identity, unless AlsoPredicting, for Monte Carlo
// dropout, which averages the probabilities of several steps. Sources: Srivastava et al., Dropout
// (2014); Gal and Ghahramani, Dropout as a Bayesian approximation (2016).
type Dropout struct {
	Rate           float64 // the probability of 0, in [0, 1)
	AlsoPredicting bool
}

// Apply implements Layer. It takes a stream in every mode, so that the parameters after it have the
// same streams, and so the same initial values, in all modes.
func (d Dropout) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", "dropout")
	defer leave()
	stream := b.Stream()
	if !checkLimits(b, name, d) {
		return nil
	}
	if b.Mode == graph.Prediction && !d.AlsoPredicting {
		return x
	}
	return b.Apply(op.Dropout{Rate: d.Rate, Stream: stream}, x, b.Header())
}

func (d Dropout) limits() []limit { return []limit{{attribute: "Rate", value: d.Rate, below: 1}} }
