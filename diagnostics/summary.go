package diagnostics

import (
	"fmt"
	"math"
)

// Summary describes a quantity's draws, of all chains together.
type Summary struct {
	Mean, Std         float64
	StandardError     float64 // of Mean, see MeanStandardError
	Low, Median, High float64 // the quantiles 5 %, 50 % and 95 %
	RHat              float64 // see SplitRHat; NaN when all values are equal
	BulkESS, TailESS  float64 // effective sample sizes, see EffectiveSampleSize; NaN when all values are equal
}

// Summarize summarizes the traces of a quantity, one for each chain, all of one length of at least
// 12. Chains that are too short, of different lengths or not finite are errors. Values may all be
// equal, as a count of divergences should be. Effective sizes and the standard error leave out the
// middle value of an odd chain: they are NaN where the other values do not determine them, as when
// the only divergence is in the middle.
func Summarize(chains [][]float64) (Summary, error) {
	halves, err := split("summary", chains, minChainLength)
	if err != nil {
		return Summary{}, err
	}
	sorted := sortedValues(chains)
	s := Summary{Low: quantileOf(sorted, 5), Median: quantileOf(sorted, 50), High: quantileOf(sorted, 95)}
	s.Mean, s.Std, s.StandardError = moments(chains)
	s.BulkESS, s.TailESS = effectiveSizes(halves, sorted)
	s.RHat, err = SplitRHat(chains)
	return s, err
}

// String returns the summary in one line.
func (s Summary) String() string {
	if math.IsNaN(s.RHat) {
		return fmt.Sprintf("%.3g at every draw", s.Mean)
	}
	return fmt.Sprintf("mean %.3g +- %.1g, std %.3g, 90 %% in %.3g ... %.3g, R-hat %.3f, %.0f effective draws, %.0f in the tails",
		s.Mean, s.StandardError, s.Std, s.Low, s.High, s.RHat, s.BulkESS, s.TailESS)
}
