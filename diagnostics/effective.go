package diagnostics

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/stat"
)

// minChainLength is the minimal number of values of a chain from which autocorrelations can be
// estimated: halves of six.
const minChainLength = 12

// EffectiveSampleSize returns the number of independent draws that would be worth as much as a
// quantity's traces. There is one trace for each chain, all of one length of at least 12. bulk is
// for the centre of the distribution: the effective size of the normal scores of the values' ranks,
// which exists for any distribution. tail is for its ends: the smaller of the sizes of the
// indicators that a value is at most the 5 % quantile, and at most the 95 % quantile. Estimates are
// reliable where sizes are above about 100 times the number of chains.
//
// With m half-chains of n values, and rho(t) their autocorrelation at lag t, in which differences
// between the half-chains count as correlation, the size is
//
//	m n / tau,    tau = -1 + 2 sum over k < K of P(k) + max(0, rho(2K)),
//	P(k) = min(P(k-1), rho(2k) + rho(2k+1))
//
// where K is the first k whose pair is not positive (Geyer's initial monotone sequence, 1992), and
// tau is at least 1/log10(m n). Source: Vehtari, Gelman, Simpson, Carpenter and Buerkner,
// Rank-normalization, folding, and localization: an improved R-hat, 2021, sections 3 and 4. Chains
// that are too short, of different lengths or not finite, and values that are all equal, are
// errors.
func EffectiveSampleSize(chains [][]float64) (bulk, tail float64, err error) {
	const statistic = "effective sample size"
	halves, err := split(statistic, chains, minChainLength)
	if err != nil {
		return 0, 0, err
	}
	sorted := sortedValues(chains)
	if sorted[0] == sorted[len(sorted)-1] {
		return 0, 0, errors.Errorf("diagnostics: %s: values must differ, got only %v", statistic, sorted[0])
	}
	bulk, tail = effectiveSizes(halves, sorted)
	if math.IsNaN(bulk) || math.IsNaN(tail) {
		return 0, 0, errors.Errorf("diagnostics: %s: chains must be longer: all values, except the middle ones of odd chains, are on one side of a quantile",
			statistic)
	}
	return bulk, tail, nil
}

// effectiveSizes returns the sizes of EffectiveSampleSize from half-chains and all values. A size
// is NaN if all values of the half-chains are on one side of its quantile.
func effectiveSizes(halves [][]float64, sorted []float64) (bulk, tail float64) {
	bulk, tail = effectiveSize(normalRanks(halves)), math.Inf(1)
	for _, percent := range []int{5, 95} {
		tail = math.Min(tail, effectiveSize(belowQuantile(halves, sorted, percent)))
	}
	return bulk, tail
}

// MeanStandardError returns the Monte Carlo standard error of the mean of a quantity's traces, one
// for each chain, all of one length of at least 12: the values' standard deviation over the square
// root of the effective sample size of the values themselves (Vehtari et al. 2021, section 4). The
// distribution must have a variance. The error is 0 when all values are equal.
func MeanStandardError(chains [][]float64) (float64, error) {
	const statistic = "standard error of the mean"
	if _, err := split(statistic, chains, minChainLength); err != nil {
		return 0, err
	}
	_, _, standardError := moments(chains)
	if math.IsNaN(standardError) {
		return 0, errors.Errorf("diagnostics: %s: chains must be longer: all values, except the middle ones of odd chains, are equal", statistic)
	}
	return standardError, nil
}

// moments returns the mean and the standard deviation of all values, and the standard error of the
// mean, see MeanStandardError. The latter is NaN if all values, except the middle ones of odd
// chains, are equal.
func moments(chains [][]float64) (mean, std, standardError float64) {
	chains, exponent := rescaled(chains)
	sorted := sortedValues(chains)
	mean, std = stat.MeanStdDev(sorted, nil)
	if sorted[0] < sorted[len(sorted)-1] {
		standardError = std / math.Sqrt(effectiveSize(halvesOf(chains)))
	}
	return math.Ldexp(mean, exponent), math.Ldexp(std, exponent), math.Ldexp(standardError, exponent)
}

// belowQuantile returns 1 where a value is at most the quantile, else 0. If ties at the largest
// value make that 1 everywhere, it returns 1 where a value is below the quantile.
func belowQuantile(chains [][]float64, sorted []float64, percent int) [][]float64 {
	quantile := quantileOf(sorted, percent)
	strictly := quantile >= sorted[len(sorted)-1]
	indicators := make([][]float64, len(chains))
	for i, chain := range chains {
		indicators[i] = make([]float64, len(chain))
		for j, v := range chain {
			if v < quantile || v == quantile && !strictly {
				indicators[i][j] = 1
			}
		}
	}
	return indicators
}

// quantileOf returns a quantile of sorted values, interpolated between the two nearest ones. At
// 50 % it is the median.
func quantileOf(sorted []float64, percent int) float64 {
	position := (len(sorted) - 1) * percent
	lo := position / 100
	quantile := sorted[lo]
	if rest := position % 100; rest > 0 {
		quantile = 2 * (quantile/2 + float64(rest)/100*(sorted[lo+1]/2-quantile/2)) // a difference might overflow
	}
	return quantile
}

// effectiveSize returns the effective sample size of half-chains without transforming their values,
// NaN if all values are equal.
func effectiveSize(halves [][]float64) float64 {
	first := halves[0][0]
	if !slices.ContainsFunc(halves, func(half []float64) bool {
		return slices.ContainsFunc(half, func(v float64) bool { return v != first })
	}) {
		return math.NaN()
	}
	rho := autocorrelation(halves)
	size := float64(len(halves) * len(halves[0]))
	return size / math.Max(integratedTime(rho), 1/math.Log10(size))
}

// integratedTime returns tau, see EffectiveSampleSize. The last two lags are left out, as their
// estimates rest on one or two products.
func integratedTime(rho []float64) float64 {
	sum, bound := 0.0, math.Inf(1)
	for lag := 0; ; lag += 2 {
		pair := rho[lag] + rho[lag+1]
		if !(pair > 0) || lag+5 >= len(rho) {
			return -1 + 2*sum + math.Max(0, rho[lag])
		}
		bound = math.Min(bound, pair)
		sum += bound
	}
}

// autocorrelation returns, for each lag t,
//
//	rho(t) = 1 - (W - mean of the chains' autocovariances at t) / V,
//	V = (n-1)/n W + variance of the chains' means
//
// where W is the mean of the chains' variances, and autocovariances are divided by n.
func autocorrelation(chains [][]float64) []float64 {
	n, m := float64(len(chains[0])), float64(len(chains))
	covariance := make([]float64, len(chains[0]))
	means := make([]float64, len(chains))
	for i, chain := range chains {
		var own []float64
		own, means[i] = autocovariance(chain)
		for t, c := range own {
			covariance[t] += c / m
		}
	}
	within := covariance[0] * n / (n - 1)
	total := covariance[0] + stat.Variance(means, nil)
	rho := make([]float64, len(covariance))
	rho[0] = 1
	for t := 1; t < len(rho); t++ {
		rho[t] = 1 - (within-covariance[t])/total
	}
	return rho
}

// autocovariance returns the sum over i of (x_i - mean)(x_{i+t} - mean) / n for each lag t, and the
// mean. It is the Fourier transform of the centred chain's power spectrum; zeros appended to the
// chain keep lags from wrapping around.
func autocovariance(chain []float64) (covariance []float64, mean float64) {
	length := 1
	for length < 2*len(chain) {
		length *= 2
	}
	n := float64(len(chain))
	// Deviations from the first value, so that a constant chain has exactly zero variance.
	shift := 0.0
	for _, v := range chain {
		shift += (v - chain[0]) / n
	}
	padded := make([]float64, length)
	for i, v := range chain {
		padded[i] = v - chain[0] - shift
	}
	transform := fourier.NewFFT(length)
	spectrum := transform.Coefficients(nil, padded)
	for i, c := range spectrum {
		spectrum[i] = complex(real(c)*real(c)+imag(c)*imag(c), 0)
	}
	covariance = transform.Sequence(padded, spectrum)[:len(chain)]
	for t := range covariance {
		covariance[t] /= float64(length) * n
	}
	return covariance, chain[0] + shift
}
