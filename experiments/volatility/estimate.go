package main

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
)

// result is a method's estimates for a series.
type result struct {
	method       string
	std, freedom estimate
	bands        []estimate // of the logarithm of each day's scale
}

// estimate has a distribution's mean, standard deviation, 5 % and 95 % quantiles, and for draws of
// chains split R-hat and the effective number of draws.
type estimate struct{ mean, std, low, high, rHat, effective float64 }

// estimateOf returns the estimate from draws. It sorts them.
func estimateOf(draws []float64) (e estimate) {
	slices.Sort(draws)
	n := len(draws)
	for _, v := range draws {
		e.mean += v / float64(n)
	}
	for _, v := range draws {
		e.std += (v - e.mean) * (v - e.mean) / float64(n)
	}
	e.std, e.low, e.high = math.Sqrt(e.std), draws[n/20], draws[n-1-n/20]
	return e
}

// mixed returns the estimate from traces of chains, with R-hat and the effective number of draws.
func mixed(chains [][]float64) (e estimate, err error) {
	e = estimateOf(slices.Concat(chains...))
	if e.rHat, err = diagnostics.SplitRHat(chains); err != nil {
		return e, err
	}
	e.effective, _, err = diagnostics.EffectiveSampleSize(chains)
	return e, err
}

// normal returns the estimate of a normal distribution.
func normal(mean, std float64) estimate {
	const z = 1.6449 // the quantile of 95 %
	return estimate{mean: mean, std: std, low: mean - z*std, high: mean + z*std}
}

// logNormal returns the estimate of exp(x), x ~ N(mean, std^2).
func logNormal(mean, std float64) estimate {
	e := normal(mean, std)
	e.mean, e.low, e.high = math.Exp(mean+std*std/2), math.Exp(e.low), math.Exp(e.high)
	e.std = e.mean * math.Sqrt(math.Expm1(std*std))
	return e
}

// cells returns the estimate's cells of the table.
func (e estimate) cells() []any {
	if e.effective == 0 {
		return []any{e.mean, e.std, e.low, e.high, "-", "-"}
	}
	return []any{e.mean, e.std, e.low, e.high, e.rHat, e.effective}
}

// covered returns the fraction of days on which the true scale lies within the band.
func covered(bands []estimate, scales []float64) float64 {
	inside := 0
	for i, scale := range scales {
		if want := math.Log(scale); bands[i].low <= want && want <= bands[i].high {
			inside++
		}
	}
	return float64(inside) / float64(len(scales))
}

// width returns the mean width of the bands.
func width(bands []estimate) float64 {
	sum := 0.0
	for _, band := range bands {
		sum += band.high - band.low
	}
	return sum / float64(len(bands))
}
