package known

import (
	"slices"

	"github.com/pkg/errors"
)

// Coefficient returns the learning coefficient of a deep linear network, and its multiplicity,
// which appears in corrections of the order of log log N/log N. The network has no biases and is
// trained with squared errors on a linear map of the given rank; widths are the numbers of units of
// its layers, from the inputs to the outputs. The coefficient is that at the most singular
// parameters of the map, where all weights into and out of superfluous hidden units are zero. A
// network of two matrices is reduced-rank regression.
//
// Source: Aoyagi, Consideration on the learning efficiency of multiple-layered neural networks with
// linear units, Neural Networks 172 (2024), main theorem; for two matrices Aoyagi and Watanabe,
// Stochastic complexities of reduced rank regression in Bayesian estimation, Neural Networks 18
// (2005).
func Coefficient(rank int, widths ...int) (lambda float64, multiplicity int, err error) {
	if len(widths) < 2 || slices.Min(widths) < 1 || rank < 0 || rank > slices.Min(widths) {
		return 0, 0, errors.Errorf("known: deep linear network: there must be at least two positive widths, and a rank of 0 to the smallest, got %v and %d",
			widths, rank)
	}
	spare := make([]int, len(widths)) // M_s = H_s - r
	for i, w := range widths {
		spare[i] = w - rank
	}
	slices.Sort(spare)
	// The bottleneck has the l + 1 smallest spare widths, for the only l with
	// l max(bottleneck) <= sum(bottleneck) < l min(the others).
	l, sum := 0, 0
	for n := 2; n <= len(spare); n++ {
		total := 0
		for _, s := range spare[:n] {
			total += s
		}
		inside := total >= (n-1)*spare[n-1]
		outside := n == len(spare) || total < (n-1)*spare[n]
		if inside && outside {
			l, sum = n-1, total
			break
		}
	}
	ends := float64(rank*(widths[0]+widths[len(widths)-1]) - rank*rank)
	if l == 0 {
		return 0, 0, errors.Errorf("known: deep linear network: no bottleneck among spare widths %v", spare)
	}
	ceiling := (sum + l - 1) / l
	a := sum - (ceiling-1)*l
	squares := 0
	for _, s := range spare[:l+1] {
		squares += s * s
	}
	pairs := (sum*sum - squares) / 2 // sum over i < j of M_i M_j
	lambda = ends/2 + float64(a*(l-a)-(l-1)*sum*sum)/float64(4*l) + float64(pairs)/2
	return lambda, a*(l-a) + 1, nil
}
