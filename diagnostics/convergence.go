package diagnostics

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// MixedRHat is the split R-hat below which chains agree well enough to be used together.
const MixedRHat = 1.05

// SplitRHat returns the rank-normalised split R-hat of a quantity's traces, one for each chain, all
// of one length of at least 4: the larger of the R-hats of the values and of their distances from
// the median (Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021). Below 1.01 the chains have
// mixed. Each chain is split in two, without its middle value if the length is odd, so that one
// chain is enough. It is NaN when all values are equal, as of chains that never moved, and infinite
// when each half-chain stays at its own value. Chains that are too short, of different lengths or
// not finite are errors.
func SplitRHat(chains [][]float64) (float64, error) {
	halves, err := split("split R-hat", chains, 4)
	if err != nil {
		return 0, err
	}
	sorted := sortedValues(chains)
	if sorted[0] == sorted[len(sorted)-1] {
		return math.NaN(), nil
	}
	folded := make([][]float64, len(halves))
	n := len(sorted)
	center := sorted[(n-1)/2]/2 + sorted[n/2]/2 // the median, by a sum that cannot overflow
	for i, half := range halves {
		folded[i] = make([]float64, len(half))
		for j, v := range half {
			folded[i][j] = math.Abs(v/2 - center/2) // half the distance, which cannot overflow
		}
	}
	return math.Max(rHat(normalRanks(halves)), rHat(normalRanks(folded))), nil
}

// split returns the halves of the chains, or an error for chains that are too short, of different
// lengths or not finite. Errors name the statistic.
func split(statistic string, chains [][]float64, minLength int) ([][]float64, error) {
	for i, chain := range chains {
		if len(chain) < minLength {
			return nil, errors.Errorf("diagnostics: %s: chains must have at least %d values, got %d in chain %d", statistic, minLength, len(chain), i)
		}
		if len(chain) != len(chains[0]) {
			return nil, errors.Errorf("diagnostics: %s: chains must have the same length, got %d values in chain %d and %d in chain 0",
				statistic, len(chain), i, len(chains[0]))
		}
		for _, v := range chain {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, errors.Errorf("diagnostics: %s: values must be finite, got %v in chain %d", statistic, v, i)
			}
		}
	}
	if len(chains) == 0 {
		return nil, errors.Errorf("diagnostics: %s: there must be at least one chain", statistic)
	}
	return halvesOf(chains), nil
}

// halvesOf returns the two halves of each chain, without the middle value of an odd length.
func halvesOf(chains [][]float64) (halves [][]float64) {
	for _, chain := range chains {
		n := len(chain) / 2
		halves = append(halves, chain[:n], chain[len(chain)-n:])
	}
	return halves
}

// BFMI returns the Bayesian fraction of missing information of a chain of Hamiltonian Monte Carlo,
// from the energy of each of its draws: the mean squared difference of consecutive energies over
// their variance (Betancourt, A conceptual introduction to Hamiltonian Monte Carlo, 2017, section
// 6.1). It is 2 when energies are independent. Below 0.3, new momenta change the energy too little
// for the chain to reach the tails of its distribution: a parametrization with lighter tails helps,
// more steps do not. The draws must be consecutive, since thinned ones look more independent than
// the chain is. Fewer than two energies, energies that are not finite, and those that are all equal
// are errors.
func BFMI(energies []float64) (float64, error) {
	if len(energies) < 2 {
		return 0, errors.Errorf("diagnostics: BFMI: there must be at least 2 energies, got %d", len(energies))
	}
	for i, energy := range energies {
		if energy-energy != 0 {
			return 0, errors.Errorf("diagnostics: BFMI: energies must be finite, got %v at draw %d", energy, i)
		}
	}
	scaled, _ := rescaled([][]float64{energies})
	changes := 0.0
	for i, energy := range scaled[0][1:] {
		change := energy - scaled[0][i]
		changes += change * change
	}
	variance := stat.Variance(scaled[0], nil)
	if variance == 0 {
		return 0, errors.Errorf("diagnostics: BFMI: energies must differ, got only %v", energies[0])
	}
	return changes / float64(len(energies)-1) / variance, nil
}

// rescaled returns the chains times 2^-exponent, with the exponent for which the largest magnitude
// is between 1/2 and 1. Squares of the results neither overflow nor vanish, and statistics of them
// have the same bits, as the factor is a power of two.
func rescaled(chains [][]float64) (scaled [][]float64, exponent int) {
	largest := 0.0
	for _, v := range slices.Concat(chains...) {
		largest = max(largest, math.Abs(v))
	}
	_, exponent = math.Frexp(largest)
	for _, chain := range chains {
		values := make([]float64, len(chain))
		for i, v := range chain {
			values[i] = math.Ldexp(v, -exponent)
		}
		scaled = append(scaled, values)
	}
	return scaled, exponent
}

func sortedValues(chains [][]float64) []float64 {
	all := slices.Concat(chains...)
	slices.Sort(all)
	return all
}

// normalRanks replaces values by the normal scores of their ranks among all chains. Ties have their
// mean rank.
func normalRanks(chains [][]float64) [][]float64 {
	type place struct{ chain, index int }
	var order []place
	for c, chain := range chains {
		for i := range chain {
			order = append(order, place{c, i})
		}
	}
	value := func(p place) float64 { return chains[p.chain][p.index] }
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(value(a), value(b)) })
	scores := make([][]float64, len(chains))
	for c := range chains {
		scores[c] = make([]float64, len(chains[c]))
	}
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && value(order[hi]) == value(order[lo]) {
			hi++
		}
		rank := float64(lo+hi+1) / 2
		score := distuv.UnitNormal.Quantile((rank - 3.0/8) / (float64(len(order)) + 1.0/4))
		for _, p := range order[lo:hi] {
			scores[p.chain][p.index] = score
		}
		lo = hi
	}
	return scores
}

// rHat returns sqrt(((n-1)/n W + B/n) / W), where W is the mean variance within chains, and B/n the
// variance of the chains' means.
func rHat(chains [][]float64) float64 {
	n := float64(len(chains[0]))
	within, center := 0.0, 0.0
	means := make([]float64, len(chains))
	for i, chain := range chains {
		// Deviations from the first value, so that a constant chain has exactly zero variance.
		mean, squares := chain[0], 0.0
		for _, v := range chain {
			mean += (v - chain[0]) / n
		}
		for _, v := range chain {
			squares += (v - mean) * (v - mean)
		}
		within += squares / (n - 1) / float64(len(chains))
		means[i] = mean
		center += (mean - means[0]) / float64(len(chains))
	}
	between := 0.0
	for _, mean := range means {
		between += (mean - means[0] - center) * (mean - means[0] - center) / float64(len(chains)-1)
	}
	if within == 0 {
		if between == 0 {
			return 1
		}
		return math.Inf(1)
	}
	return math.Sqrt(((n-1)/n*within + between) / within)
}
