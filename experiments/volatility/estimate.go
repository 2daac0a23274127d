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

// estimate is a distribution's mean and standard deviation with the ends of its middle 90 %, and
// for draws of chains how well these have mixed.
type estimate struct{ mean, std, low, high, rHat, effective float64 }

// estimateOf is the estimate from draws, which it sorts.
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

// mixed is the estimate from traces of chains, with how well these have mixed.
func mixed(chains [][]float64) (e estimate, err error) {
	e = estimateOf(slices.Concat(chains...))
	if e.rHat, err = diagnostics.SplitRHat(chains); err != nil {
		return e, err
	}
	e.effective, _, err = diagnostics.EffectiveSampleSize(chains)
	return e, err
}

// normal is the estimate of a normal distribution.
func normal(mean, std float64) estimate {
	const z = 1.6449 // the quantile of 95 %
	return estimate{mean: mean, std: std, low: mean - z*std, high: mean + z*std}
}

// logNormal is the estimate of exp(x), x ~ N(mean, deviation^2).
func logNormal(mean, std float64) estimate {
	e := normal(mean, std)
	e.mean, e.low, e.high = math.Exp(mean+std*std/2), math.Exp(e.low), math.Exp(e.high)
	e.std = e.mean * math.Sqrt(math.Expm1(std*std))
	return e
}

// cells are the estimate's columns.
func (e estimate) cells() []any {
	if e.effective == 0 {
		return []any{e.mean, e.std, e.low, e.high, "-", "-"}
	}
	return []any{e.mean, e.std, e.low, e.high, e.rHat, e.effective}
}

// covered is the share of the days on which the true scale lies within the band.
func covered(bands []estimate, scales []float64) float64 {
	inside := 0
	for i, scale := range scales {
		if want := math.Log(scale); bands[i].low <= want && want <= bands[i].high {
			inside++
		}
	}
	return float64(inside) / float64(len(scales))
}

// width is the mean over the days of the bands' widths.
func width(bands []estimate) float64 {
	sum := 0.0
	for _, band := range bands {
		sum += band.high - band.low
	}
	return sum / float64(len(bands))
}
