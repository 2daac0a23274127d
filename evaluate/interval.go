package evaluate

import "math"

// FractionInterval returns the 95 % interval of a fraction that was measured on n examples, at
// least 1. Unlike the interval of the normal approximation, it has a width above 0 at the fractions
// 0 and 1. Source: Wilson, Probable inference, the law of succession, and statistical inference
// (1927).
func FractionInterval(fraction float64, n int) (low, high float64) {
	const z = 1.959964
	total := float64(n)
	centre := (fraction + z*z/(2*total)) / (1 + z*z/total)
	half := z / (1 + z*z/total) * math.Sqrt(fraction*(1-fraction)/total+z*z/(4*total*total))
	return max(0, centre-half), min(1, centre+half)
}
