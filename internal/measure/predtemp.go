package measure

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The temperature of predictions. For any field F of the parameters E[F.gU] = T E[div F] under
// exp(-U/T). The configurational temperature uses theta for F, so that all weights count alike.
// Two other fields weight the directions that predictions depend on. In both, gL is the gradient
// of the likelihood's part of U, with random operations such as dropout left out.
//
// By curvature, F = gL: a direction counts by its curvature lambda, by how much the likelihood
// changes along it. The noise of minibatches heats the few steepest directions far more than the
// average one. A thermostat controls the average, and does not see that.
//
// By determination, F = (P + G)^-1 gL, with the precision P of the prior and the curvature G of the
// likelihood: a direction counts by s = lambda/(lambda + prior), so that each direction that the
// data determine counts once, as it does in the spread of predictions. See determination.go.

// Measuring takes predictionPasses passes over the data for each sample. It takes at most
// predictionFraction of the passes that the run made, and at most maxPredictionSamples samples.
// Fewer than minPredictionSamples give no estimate of the error. For the error, samples are put
// into at most predictionGroups groups of consecutive samples of a chain, and the groups are
// taken as independent.
const (
	predictionPasses     = 5
	predictionFraction   = 0.25
	maxPredictionSamples = 64
	minPredictionSamples = 4
	predictionGroups     = 16
)

// PredictionOptions are the options of PredictionTemperature.
type PredictionOptions struct {
	Files   []string                      // the samples
	Passes  float64                       // passes over the data that the run made
	Damaged func(err error)               // called for a sample that is damaged, and left out
	Observe func(done, total, images int) // called after each sample
}

// PredictionTemperatures are the temperatures of the directions that predictions depend on, in
// two weightings of the directions of weight space. Determination is nil for networks with too
// many weights.
type PredictionTemperatures struct {
	Curvature, Determination *diagnostics.Measured
	// Steepness is the mean curvature of the likelihood, weighted by the curvature itself; 0
	// without Determination.
	Steepness float64
}

// PredictionSamples returns the number of samples that PredictionTemperature measures, for a run
// with the given numbers of sample files and of passes over the data. It returns 0 if measuring
// enough of them would take too long.
func PredictionSamples(files int, passes float64) int {
	if n := min(files, maxPredictionSamples, int(predictionFraction*passes/predictionPasses)); n >= minPredictionSamples {
		return n
	}
	return 0
}

// PredictionTemperature returns the temperatures of the directions that predictions depend on,
// over some of the samples, weighted as they are in predictions. It returns nil if measuring
// enough samples would take too long, or if the context ends.
func PredictionTemperature(ctx context.Context, device tensor.Device, s Subject, o PredictionOptions) (*PredictionTemperatures, error) {
	n := PredictionSamples(len(o.Files), o.Passes)
	if n == 0 {
		return nil, nil
	}
	f, err := newField(device, s)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var products, divergences [weightings][]float64
	for i := range n {
		sample, err := samples.ReadSample(o.Files[(2*i+1)*len(o.Files)/(2*n)])
		if err != nil {
			o.Damaged(err)
			continue
		}
		terms, err := f.at(ctx, sample)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !terms.finite() {
			o.Damaged(&samples.NotFiniteError{Chain: sample.Chain, Step: sample.Step, What: "gradient"})
			continue
		}
		for w, term := range terms {
			products[w] = append(products[w], sample.Weight*term.product)
			divergences[w] = append(divergences[w], sample.Weight*term.divergence)
		}
		o.Observe(i+1, n, predictionPasses*len(f.labels))
	}
	if len(products[0]) < minPredictionSamples {
		return nil, nil
	}
	t := &PredictionTemperatures{Curvature: ratio(products[byCurvature], divergences[byCurvature])}
	if f.determination != nil {
		t.Determination = ratio(products[byDetermination], divergences[byDetermination])
		t.Steepness = f.determination.steepness
	}
	return t, nil
}

// ratio returns the ratio of two sums. Its standard error is the jackknife's: by leaving out, in
// turn, each group of consecutive terms, as if the groups were independent. The sum of the squared
// differences has the factor (n - 1)/n for n groups, because estimates that share all groups but
// one differ by only 1/(n - 1) of what a group differs from the others.
func ratio(over, under []float64) *diagnostics.Measured {
	above, below := floats.Sum(over), floats.Sum(under)
	groups := min(len(over), predictionGroups)
	squares, n := 0.0, float64(groups)
	for i := range groups {
		lo, hi := i*len(over)/groups, (i+1)*len(over)/groups
		off := (above-floats.Sum(over[lo:hi]))/(below-floats.Sum(under[lo:hi])) - above/below
		squares += off * off
	}
	return &diagnostics.Measured{
		Value: diagnostics.Number(above / below), StandardError: diagnostics.Number(math.Sqrt(squares * (n - 1) / n)), Groups: groups,
	}
}
