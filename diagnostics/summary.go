package diagnostics

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// Summary describes a quantity's draws, of all chains together.
type Summary struct {
	Mean, Std         float64
	StandardError     float64 // of Mean, see MeanStandardError
	Low, Median, High float64 // the quantiles 5 %, 50 % and 95 %
	RHat              float64 // see SplitRHat
	BulkESS, TailESS  float64 // effective sample sizes, see EffectiveSampleSize; NaN when all values are equal
}

// Summarize summarizes the traces of a quantity, one for each chain. It returns the errors of
// SplitRHat and EffectiveSampleSize, except that values may all be equal, as a count of divergences
// should be.
func Summarize(chains [][]float64) (Summary, error) {
	s := Summary{BulkESS: math.NaN(), TailESS: math.NaN()}
	var err error
	if s.RHat, err = SplitRHat(chains); err != nil {
		return Summary{}, err
	}
	if s.StandardError, err = MeanStandardError(chains); err != nil {
		return Summary{}, err
	}
	sorted := sortedValues(chains)
	if sorted[0] < sorted[len(sorted)-1] {
		if s.BulkESS, s.TailESS, err = EffectiveSampleSize(chains); err != nil {
			return Summary{}, err
		}
	}
	s.Mean, s.Std = stat.MeanStdDev(sorted, nil)
	s.Low, s.Median, s.High = quantileOf(sorted, 5), quantileOf(sorted, 50), quantileOf(sorted, 95)
	return s, nil
}

// String returns the summary in one line.
func (s Summary) String() string {
	if math.IsNaN(s.BulkESS) {
		return fmt.Sprintf("%.3g at every draw", s.Mean)
	}
	return fmt.Sprintf("mean %.3g +- %.1g, std %.3g, 90 %% in %.3g ... %.3g, R-hat %.3f, %.0f effective draws, %.0f in the tails",
		s.Mean, s.StandardError, s.Std, s.Low, s.High, s.RHat, s.BulkESS, s.TailESS)
}
