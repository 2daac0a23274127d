package diagnostics

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// LeaveOneOut is an estimate of how well a model predicts observations that it has not seen, from
// draws of the posterior given all observations. Differences between models of the same
// observations compare them, see Minus.
type LeaveOneOut struct {
	// Elpd is the expected log pointwise predictive density: the sum over the observations i of
	// ln p(y_i | the other observations), in nats. Its standard error measures how much Elpd would
	// vary with other observations like these, not with other draws.
	Elpd Measured
	// Parameters is the effective number of parameters: by how much the sum of ln p(y_i | all
	// observations) exceeds Elpd.
	Parameters float64
	Pointwise  []float64 // the terms of Elpd, by observation
	// ParetoK is the shape of the tail of the importance weights, by observation. Above MaxParetoK
	// an observation influences the posterior so much that its term cannot be estimated from these
	// draws.
	ParetoK []float64
	// MaxParetoK is 1 - 1/log10(S) for S draws, at most 0.7: heavier tails need more draws.
	MaxParetoK float64
}

// EstimateLeaveOneOut estimates leave-one-out cross-validation by Pareto-smoothed importance
// sampling. logLikelihoods has the traces of ln p(y_i | theta) of each observation i, normalised,
// one slice for each chain, as Traces.Of returns them.
//
// A draw's importance weight for observation i is 1/p(y_i | theta). The largest ones, 3 sqrt(S/r)
// of S draws of relative efficiency r but at most a fifth, are replaced by the quantiles of a
// generalised Pareto distribution fitted to them, and limited to the largest weight. Source:
// Vehtari, Gelman and Gabry, Practical Bayesian model evaluation using leave-one-out
// cross-validation and WAIC, 2017, section 2.1; Vehtari, Simpson, Gelman, Yao and Gabry, Pareto
// smoothed importance sampling, 2024.
//
// Fewer than two observations, traces that are too short, of different lengths or not finite, and
// observations with different numbers of draws are errors.
func EstimateLeaveOneOut(logLikelihoods [][][]float64) (LeaveOneOut, error) {
	n := len(logLikelihoods)
	if n < 2 {
		return LeaveOneOut{}, errors.Errorf("diagnostics: leave-one-out: there must be at least 2 observations, got %d", n)
	}
	draws := len(slices.Concat(logLikelihoods[0]...))
	e := LeaveOneOut{Pointwise: make([]float64, n), ParetoK: make([]float64, n), MaxParetoK: min(1-1/math.Log10(float64(draws)), 0.7)}
	for i, chains := range logLikelihoods {
		efficiency, err := relativeEfficiency(chains)
		if err != nil {
			return LeaveOneOut{}, errors.Wrapf(err, "diagnostics: leave-one-out: observation %d", i)
		}
		values := slices.Concat(chains...)
		if len(values) != draws {
			return LeaveOneOut{}, errors.Errorf("diagnostics: leave-one-out: observations must have the same draws, got %d for observation %d and %d for observation 0",
				len(values), i, draws)
		}
		logWeights := make([]float64, draws)
		floats.SubTo(logWeights, logWeights, values)
		e.ParetoK[i] = smoothTail(logWeights, efficiency)
		total := floats.LogSumExp(logWeights)
		e.Parameters += floats.LogSumExp(values) - math.Log(float64(draws))
		floats.Add(values, logWeights)
		e.Pointwise[i] = floats.LogSumExp(values) - total
	}
	sum := floats.Sum(e.Pointwise)
	e.Parameters -= sum
	e.Elpd = Measured{Value: Number(sum), StandardError: sumError(e.Pointwise)}
	return e, nil
}

// Minus returns by how much this model's Elpd exceeds another model's, which must be of the same
// observations in the same order. Its standard error follows from the differences by observation.
func (e LeaveOneOut) Minus(other LeaveOneOut) (Measured, error) {
	if len(e.Pointwise) != len(other.Pointwise) {
		return Measured{}, errors.Errorf("diagnostics: leave-one-out: models must be of the same observations, got %d and %d",
			len(e.Pointwise), len(other.Pointwise))
	}
	difference := make([]float64, len(e.Pointwise))
	floats.SubTo(difference, e.Pointwise, other.Pointwise)
	return Measured{Value: Number(floats.Sum(difference)), StandardError: sumError(difference)}, nil
}

// Unreliable returns the observations whose terms cannot be trusted.
func (e LeaveOneOut) Unreliable() []int {
	var list []int
	for i, k := range e.ParetoK {
		if !(k <= e.MaxParetoK) {
			list = append(list, i)
		}
	}
	return list
}

// String returns the estimate in one line, with a warning if some of its terms cannot be trusted.
func (e LeaveOneOut) String() string {
	s := fmt.Sprintf("elpd %v, %.1f effective parameters", e.Elpd, e.Parameters)
	if list := e.Unreliable(); len(list) > 0 {
		s += fmt.Sprintf(", unreliable: Pareto k is above %.2g for %d of %d observations", e.MaxParetoK, len(list), len(e.ParetoK))
	}
	return s
}

// sumError returns the standard error of a sum of independent terms.
func sumError(terms []float64) Number {
	return Number(math.Sqrt(float64(len(terms))) * stat.StdDev(terms, nil))
}

// relativeEfficiency returns the effective size of the likelihoods exp(v), divided by the number of
// draws; 1 if all are equal.
func relativeEfficiency(logLikelihoods [][]float64) (float64, error) {
	halves, err := split("likelihoods", logLikelihoods, minChainLength)
	if err != nil {
		return 0, err
	}
	largest, draws := math.Inf(-1), 0
	for _, chain := range halves {
		largest, draws = max(largest, floats.Max(chain)), draws+len(chain)
	}
	likelihoods := make([][]float64, len(halves))
	for i, chain := range halves {
		for _, v := range chain {
			likelihoods[i] = append(likelihoods[i], math.Exp(v-largest))
		}
	}
	size := effectiveSize(likelihoods)
	if math.IsNaN(size) {
		return 1, nil
	}
	return size / float64(draws), nil
}

// smoothTail smooths the largest weights, whose logarithms it changes up to a common constant, and
// returns the shape k of their tail: infinite if it has too few weights, -infinite if the largest
// weights are equal.
func smoothTail(logWeights []float64, efficiency float64) (k float64) {
	n := float64(len(logWeights))
	floats.AddConst(-floats.Max(logWeights), logWeights)
	order := make([]int, len(logWeights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(logWeights[i], logWeights[j]) })
	size := int(math.Ceil(min(n/5, 3*math.Sqrt(n/efficiency))))
	below := max(math.Exp(logWeights[order[len(order)-size-1]]), 0x1p-1022)
	if below == 1 {
		return math.Inf(-1)
	}
	var tail []int
	var excess []float64
	for _, at := range order[len(order)-size:] {
		if v := math.Exp(logWeights[at]) - below; v > 0 {
			tail, excess = append(tail, at), append(excess, v)
		}
	}
	if len(tail) < 5 {
		return math.Inf(1)
	}
	k, scale := fitPareto(excess)
	for i, at := range tail {
		p := (float64(i) + 0.5) / float64(len(tail))
		quantile := -scale * math.Log1p(-p)
		if k != 0 {
			quantile = scale * math.Expm1(-k*math.Log1p(-p)) / k
		}
		logWeights[at] = min(0, math.Log(quantile+below))
	}
	return k
}

// fitPareto returns the shape and scale of the generalised Pareto distribution of some positive
// numbers in ascending order, by the empirical Bayes estimate of Zhang and Stephens, A new and
// efficient estimation method for the generalized Pareto distribution, 2009. The shape is drawn
// towards 1/2, with the weight of ten numbers.
func fitPareto(x []float64) (k, scale float64) {
	n := float64(len(x))
	points := 30 + int(math.Sqrt(n))
	quartile := x[int(n/4+0.5)-1]
	shape := func(b float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Log1p(-b * v)
		}
		return sum / n
	}
	b, logProfile := make([]float64, points), make([]float64, points)
	for j := range b {
		b[j] = 1/x[len(x)-1] + (1-math.Sqrt(float64(points)/(float64(j)+0.5)))/(3*quartile)
		k := shape(b[j])
		logProfile[j] = n * (math.Log(-b[j]/k) - k - 1)
	}
	total, mean := floats.LogSumExp(logProfile), 0.0
	for j := range b {
		mean += b[j] * math.Exp(logProfile[j]-total)
	}
	k = shape(mean)
	return (n*k + 5) / (n + 10), -k / mean
}
